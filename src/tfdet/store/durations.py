"""Expected duration of a run, from the durations of stored records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import msgspec

from tfdet.matrix.devices import DeviceRegistry

K = TypeVar("K", bound=Hashable)
Cell = tuple[str, str, str, str]  # environment, device, source, solution
UNKNOWN_SECONDS = 60.0  # for a source without records


class _Device(msgspec.Struct, frozen=True, gc=False):
    kind: str


class _DurationFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a record that its duration depends on."""

    environment: str
    device: _Device
    source: str
    case: str
    solution: str
    repeats: int
    relaunches: int
    duration_seconds: float


@dataclass(frozen=True)
class Durations:
    """Seconds per repeat of a source under a solution on a kind of device.

    same_environment is used if it has the cell, else the median over other_environments, else the device's default.
    """

    same_environment: Mapping[Cell, float]
    other_environments: Mapping[tuple[str, str], float]
    default: Mapping[str, float]

    def expected_seconds(self, environment: str, device: str, source: str, solution: str, runs: int) -> float:
        """Expected seconds.  device: its name for `--device`.  runs: repeats times processes."""
        found = self.same_environment.get((environment, device, source, solution))
        if found is None:
            found = self.other_environments.get((device, source))
        if found is None:
            found = self.default.get(device)
        return UNKNOWN_SECONDS if found is None else found * runs


def collect_durations(files: Iterable[Path], devices: DeviceRegistry) -> Durations:
    """Durations from the readable lines of these files; lines that are not records are skipped."""
    words = {key: kind.cli_name for key, kind in devices.kinds.items()}
    cases: dict[Cell, dict[str, float]] = defaultdict(dict)
    for one in _read_durations(files):
        kind = one.device.kind
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
