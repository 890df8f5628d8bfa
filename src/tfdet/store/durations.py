"""How long cases took where they were measured: what a run of them is expected to take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from tfdet.matrix.devices import DeviceRegistry
from tfdet.store.migrate import schema1_device_kind

K = TypeVar("K", bound=Hashable)
Cell = tuple[str, str, str, str]  # environment, device, source, solution
UNKNOWN_SECONDS = 60.0  # of a source that nobody ever measured


class _Device(msgspec.Struct, frozen=True, gc=False):
    kind: str


class _DurationFields(msgspec.Struct, frozen=True, gc=False):
    """Of a record what its time depends on; a schema 1 record has its device as a word."""

    environment: str
    device: str | _Device
    source: str
    case: str
    solution: str
    repeats: int
    relaunches: int
    duration_seconds: float


@dataclass(frozen=True)
class Durations:
    """Seconds of a source on a kind of device, under one solution, by repeat: those of the environment itself where it
    was measured there, else what others took.
    """

    same_environment: Mapping[Cell, float]
    other_environments: Mapping[tuple[str, str], float]
    default: Mapping[str, float]

    def expected_seconds(self, environment: str, device: str, source: str, solution: str, runs: int) -> float:
        """device: as `--device` calls it.  runs: repeats of all processes."""
        found = self.same_environment.get((environment, device, source, solution))
        if found is None:
            found = self.other_environments.get((device, source))
        if found is None:
            found = self.default.get(device)
        return UNKNOWN_SECONDS if found is None else found * runs


def collect_durations(files: Iterable[Path], devices: DeviceRegistry) -> Durations:
    """Of a file's lines, those that tell: what is wrong with the others is not asked here."""
    words = {key: kind.word for key, kind in devices.kinds.items()}
    cases: dict[Cell, dict[str, float]] = defaultdict(dict)
    for one in _read_durations(files):
        kind = one.device.kind if isinstance(one.device, _Device) else schema1_device_kind(one.device)
        cell = one.environment, words.get(kind, kind), one.source, one.solution
        cases[cell][one.case] = one.duration_seconds / max(1, one.repeats * one.relaunches)
    here = {cell: sum(some.values()) for cell, some in cases.items()}
    elsewhere = _medians(((cell[1], cell[2]), seconds) for cell, seconds in here.items())
    return Durations(here, elsewhere, _medians((cell[1], seconds) for cell, seconds in here.items()))


def _read_durations(files: Iterable[Path]) -> Iterator[_DurationFields]:
    decode = msgspec.json.Decoder(_DurationFields).decode
    for path in files:
        with path.open("rb") as source:
            for line in source:
                try:
                    yield decode(line)
                except msgspec.MsgspecError:
                    continue


def _medians(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    found: dict[K, list[float]] = defaultdict(list)
    for key, seconds in pairs:
        found[key].append(seconds)
    return {key: median(some) for key, some in found.items()}
