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
BUNDLE: Final = "bundle"  # an environment packed into one archive, with some parts left out
# What starts an environment, as records name it; none: the user started it without this project's engines.
ENGINES: Final = (VENV, BUNDLE, "docker", "apptainer", "enroot", "none")


class StackFacts(NamedTuple):
    """The fields of a record that the rules read.

    versions: of NumPy and the framework.  has_image: whether the record names an image.  has_bundle: whether it names
    a bundle.  cores: of the CPU.  capability: the compute capability.  is_gpu_reported: whether NVIDIA's tools reported
    the GPU.
    """

    model: str
    engine: str
    python: str
    versions: tuple[str, str]
    has_image: bool
    has_bundle: bool
    cores: int
    driver: str | None
    capability: str | None
    is_gpu_reported: bool


class Rule(NamedTuple):
    """A rule.  why: the reason for the rule, which error messages quote as advice."""

    name: str
    is_broken: Callable[[DeviceKind, StackFacts], bool]
    why: str


_is_python = re.compile(  # platform.python_version() of the versions that the probe runs in, from 3.5 on
    r"3\.([5-9]|[1-9]\d)\.(0|[1-9]\d?)((a|b|rc)\d{1,2})?\+?"
).fullmatch
_is_driver = re.compile(r"\d+\.\d+(\.\d+)?").fullmatch  # as the kernel module reports it
_is_capability = re.compile(r"[1-9]\d?\.\d").fullmatch


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
    Rule("no cores", lambda kind, facts: facts.cores < 1, "a run needs at least one core"),
    Rule(
        "unknown engine",
        lambda kind, facts: facts.engine not in ENGINES,
        f"the engines are {', '.join(ENGINES)}",
    ),
    Rule(
        "engine and bundle do not match",
        lambda kind, facts: (facts.engine == BUNDLE) != facts.has_bundle,
        "only runs of a bundle, and all of them, record what the bundle left out",
    ),
    Rule(
        "invalid version of Python, NumPy or the framework",
        lambda kind, facts: not (_is_python(facts.python) and all(map(_is_version, facts.versions))),
        "each is a version such as 3.12.1",
    ),
    Rule(
        "a virtual environment with an image",
        lambda kind, facts: facts.engine == VENV and facts.has_image,
        "pip installs a virtual environment without a container image",
    ),
    Rule(
        "a GPU without a compute capability",
        lambda kind, facts: kind.has_model_name and facts.capability is None,
        "what reports the GPU's name reports its compute capability, too",
    ),
    Rule(
        "invalid compute capability",
        lambda kind, facts: facts.capability is not None and not _is_capability(facts.capability),
        "it is a number such as 9.0",
    ),
    Rule(
        "the compute capability of another GPU",
        _is_other_capability,
        "matrix/devices names the compute capability of this GPU",
    ),
    Rule(
        "invalid driver version",
        lambda kind, facts: facts.driver is not None and not _is_driver(facts.driver),
        "it is a number such as 550.54.14",
    ),
    Rule(
        "a GPU with nothing but its name",
        lambda kind, facts: kind.has_model_name and facts.driver is None and not facts.is_gpu_reported,
        "the driver, nvidia-smi and NVML report each GPU, and a machine with a GPU has at least one of them",
    ),
)


def broken_rules(kind: DeviceKind, facts: StackFacts) -> list[str]:
    """Return a message for each rule that the facts of a record break."""
    return [f"{rule.name}: {rule.why}" for rule in RULES if rule.is_broken(kind, facts)]
