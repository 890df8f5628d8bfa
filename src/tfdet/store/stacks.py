"""Rules on the device and the software stack that a record names: combinations that no run of the probe can give.

Each rule has a name and the reason why the probe never writes such a record (tfdet_probe.core.provenance, .devices).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from packaging.version import InvalidVersion, Version

from tfdet.matrix.devices import DeviceKind

VENV: Final = "venv"
BUNDLE: Final = "bundle"
# What brings an environment up, as records name it; none: nothing of this project did.
ENGINES: Final = (VENV, BUNDLE, "docker", "apptainer", "enroot", "none")


class StackFacts(NamedTuple):
    """The fields of a record that the rules read.

    versions: of NumPy and the framework.  image: whether the record names an image.  bundled: whether it names
    a bundle.  is_gpu_reported: whether NVIDIA's tools reported the GPU.
    """

    model: str
    engine: str
    python: str
    versions: tuple[str, str]
    image: bool
    bundled: bool
    cores: int
    driver: str | None
    capability: str | None
    is_gpu_reported: bool


class Rule(NamedTuple):
    """A rule.  why: the reason for the rule, which error messages quote as advice."""

    name: str
    is_broken: Callable[[DeviceKind, StackFacts], bool]
    why: str


_is_python = re.compile(r"\d\.\d{1,2}\.\d{1,2}((a|b|rc)\d{1,2})?\+?").fullmatch  # platform.python_version()
_is_driver = re.compile(r"\d+\.\d+(\.\d+)?").fullmatch  # as the kernel module reports it
_is_capability = re.compile(r"\d{1,2}\.\d").fullmatch


def _is_version(text: str) -> bool:
    try:
        Version(text)  # as packages have it (PEP 440)
    except InvalidVersion:
        return False
    return text == text.strip()


def _is_other_capability(kind: DeviceKind, facts: StackFacts) -> bool:
    expected = kind.capability(facts.model)
    return expected is not None and facts.capability is not None and facts.capability != expected


RULES: Final = (
    Rule("no cores", lambda kind, facts: facts.cores < 1, "what runs has one at least"),
    Rule(
        "no engine",
        lambda kind, facts: facts.engine not in ENGINES,
        f"it is one of {', '.join(ENGINES)}",
    ),
    Rule(
        "a bundle of another engine, or an engine of no bundle",
        lambda kind, facts: (facts.engine == BUNDLE) != facts.bundled,
        "what runs of a bundle tells what it left out, and nothing else does",
    ),
    Rule(
        "no version of Python, NumPy or the framework",
        lambda kind, facts: not (_is_python(facts.python) and all(map(_is_version, facts.versions))),
        "each is one such as 3.12.1",
    ),
    Rule(
        "an image of a virtual environment",
        lambda kind, facts: facts.engine == VENV and facts.image,
        "it is made by pip, of no image",
    ),
    Rule(
        "a GPU without a compute capability",
        lambda kind, facts: kind.has_model_name and facts.capability is None,
        "what tells its name tells that, too",
    ),
    Rule(
        "no compute capability",
        lambda kind, facts: facts.capability is not None and not _is_capability(facts.capability),
        "it is a number such as 9.0",
    ),
    Rule("the compute capability of another GPU", _is_other_capability, "matrix/devices has that of this one"),
    Rule(
        "no driver's version",
        lambda kind, facts: facts.driver is not None and not _is_driver(facts.driver),
        "it is a number such as 550.54.14",
    ),
    Rule(
        "a GPU of which its name alone is told",
        lambda kind, facts: kind.has_model_name and facts.driver is None and not facts.is_gpu_reported,
        "the driver, nvidia-smi and NVML tell of each card, and one of them is there wherever a card runs",
    ),
)


def broken_rules(kind: DeviceKind, facts: StackFacts) -> list[str]:
    """Return a message for each rule that the facts of a record break."""
    return [f"{rule.name}: {rule.why}" for rule in RULES if rule.is_broken(kind, facts)]
