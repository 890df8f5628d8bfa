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
# Environment, device, source (of nondeterminism), solution (what makes the source deterministic).
Cell = tuple[str, str, str, str]
UNKNOWN_SECONDS = 60.0  # expected for a source without records


class _Device(msgspec.Struct, frozen=True, gc=False):
    kind: str


class _DurationFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a record that its duration depends on.  relaunches: the number of processes."""

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
    """Seconds per repeat of all cases of a source under a solution on a kind of device.

    same_environment is used if it has the cell, else other_environments, {(device, source): median over its cells},
    else default, {device: median over its cells}.
    """

    same_environment: Mapping[Cell, float]
    other_environments: Mapping[tuple[str, str], float]
    default: Mapping[str, float]

    def expected_seconds(self, environment: str, device: str, source: str, solution: str, runs: int) -> float:
        """Return the expected seconds.  device: its name for `--device`.  runs: repeats times processes."""
        per_run = self.same_environment.get((environment, device, source, solution))
        if per_run is None:
            per_run = self.other_environments.get((device, source))
        if per_run is None:
            per_run = self.default.get(device)
        return UNKNOWN_SECONDS if per_run is None else per_run * runs


def collect_durations(files: Iterable[Path], devices: DeviceRegistry) -> Durations:
    """Return the durations of the records in these files; skip lines that are not records."""
    cli_names = {key: kind.cli_name for key, kind in devices.kinds.items()}
    seconds_by_case: dict[Cell, dict[str, float]] = defaultdict(dict)
    for record in _read_durations(files):
        kind = record.device.kind
        cell = record.environment, cli_names.get(kind, kind), record.source, record.solution
        seconds_by_case[cell][record.case] = record.duration_seconds / max(1, record.repeats * record.relaunches)
    by_cell = {cell: sum(by_case.values()) for cell, by_case in seconds_by_case.items()}
    by_device_and_source = _medians(((cell[1], cell[2]), seconds) for cell, seconds in by_cell.items())
    return Durations(by_cell, by_device_and_source, _medians((cell[1], seconds) for cell, seconds in by_cell.items()))


def _read_durations(files: Iterable[Path]) -> Iterator[_DurationFields]:
    decode = msgspec.json.Decoder(_DurationFields).decode
    for path in files:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield decode(line)
                except msgspec.MsgspecError:
                    continue


def _medians(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    values: dict[K, list[float]] = defaultdict(list)
    for key, seconds in pairs:
        values[key].append(seconds)
    return {key: median(group) for key, group in values.items()}
