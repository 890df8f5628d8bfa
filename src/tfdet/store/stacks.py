"""Rules on the device and the software stack that a record names: combinations that no run of the probe can give.

Each rule has a name and the reason why the probe never writes such a record (tfdet_probe.core.provenance, .devices).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tfdet.matrix.devices import DeviceKind

VENV: Final = "venv"


class StackFacts(NamedTuple):
    """The fields of a record that the rules read.

    image: whether the record names an image.  is_gpu_reported: whether NVIDIA's tools reported the GPU.
    """

    model: str
    engine: str
    image: bool
    cores: int
    driver: str | None
    capability: str | None
    is_gpu_reported: bool


class Rule(NamedTuple):
    """A rule.  why: the reason for the rule, which error messages quote as advice."""

    name: str
    is_broken: Callable[[DeviceKind, StackFacts], bool]
    why: str


_is_driver = re.compile(r"\d+\.\d+(\.\d+)?").fullmatch  # as the kernel module reports it
_is_capability = re.compile(r"\d{1,2}\.\d").fullmatch


def _is_other_capability(kind: DeviceKind, facts: StackFacts) -> bool:
    expected = kind.capability(facts.model)
    return expected is not None and facts.capability is not None and facts.capability != expected


RULES: Final = (
    Rule("no cores", lambda kind, facts: facts.cores < 1, "what runs has one at least"),
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
