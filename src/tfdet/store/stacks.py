"""What ran and where, as a record tells it, all in one: rules on what no run can tell of its stack and its device.

A rule has a name, and why the probe never writes what breaks it (tfdet_probe.core.provenance, .devices).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from tfdet.matrix.devices import DeviceKind

VENV: Final = "venv"


class StackFacts(NamedTuple):
    """image: some image is told of.  seen: NVIDIA's tools told of the card."""

    model: str
    engine: str
    image: bool
    cores: int
    driver: str | None
    capability: str | None
    seen: bool


class Rule(NamedTuple):
    """why: it is the advice, too."""

    name: str
    is_broken: Callable[[DeviceKind, StackFacts], bool]
    why: str


_is_driver = re.compile(r"\d+\.\d+(\.\d+)?").fullmatch  # as the kernel's module tells it
_is_capability = re.compile(r"\d{1,2}\.\d").fullmatch


def _other_capability(kind: DeviceKind, told: StackFacts) -> bool:
    known = kind.capability(told.model)
    return known is not None and told.capability is not None and told.capability != known


RULES: Final = (
    Rule("no cores", lambda kind, told: told.cores < 1, "what runs has one at least"),
    Rule(
        "an image of a virtual environment",
        lambda kind, told: told.engine == VENV and told.image,
        "it is made by pip, of no image",
    ),
    Rule(
        "a GPU without a compute capability",
        lambda kind, told: kind.has_model_name and told.capability is None,
        "what tells its name tells that, too",
    ),
    Rule(
        "no compute capability",
        lambda kind, told: told.capability is not None and not _is_capability(told.capability),
        "it is a number such as 9.0",
    ),
    Rule("the compute capability of another GPU", _other_capability, "matrix/devices has that of this one"),
    Rule(
        "no driver's version",
        lambda kind, told: told.driver is not None and not _is_driver(told.driver),
        "it is a number such as 550.54.14",
    ),
    Rule(
        "a GPU of which its name alone is told",
        lambda kind, told: kind.has_model_name and told.driver is None and not told.seen,
        "the driver, nvidia-smi and NVML tell of each card, and one of them is there wherever a card runs",
    ),
)


def broken_rules(kind: DeviceKind, told: StackFacts) -> list[str]:
    return [f"{rule.name}: {rule.why}" for rule in RULES if rule.is_broken(kind, told)]
