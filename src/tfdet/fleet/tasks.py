"""The plan of a fleet: cells of environments in tasks of about the same length."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from tfdet.engines.base import Selection
from tfdet.matrix.field_types import StrictModel, Text
from tfdet.matrix.load import Matrix
from tfdet.matrix.plan import PlannedCell, plan_cells
from tfdet.store.durations import Durations
from tfdet_common.defaults import RUN_DEFAULTS

SUITE_OVERHEAD_MEBIBYTES = 2048  # what the suite takes beside one case
START_SECONDS = 20.0  # of an environment that is there: its framework is imported, its device asked


class FleetOptions(StrictModel):
    """What all tasks of a fleet have in common: see engines.base.Selection."""

    device: Text
    solutions: list[Text] = Field(default=[], description="none named: all")
    repeats: int = RUN_DEFAULTS.repeats
    processes: int = RUN_DEFAULTS.processes
    timeout: float = RUN_DEFAULTS.seconds
    memory: int = RUN_DEFAULTS.mebibytes
    proves: bool = False
    code: Text | None = None
    engine: Text | None = Field(default=None, description="absent: the environment's own")
    gpu: Text | None = Field(default=None, description="the type of GPU that is asked for, as the cluster calls it")

    def selection(self, sources: Sequence[str]) -> Selection:
        return Selection(
            device=self.device, sources=tuple(sources), solutions=tuple(self.solutions), repeats=self.repeats,
            processes=self.processes, timeout=self.timeout, memory=self.memory, resume_from_any_machine=True,
            proves=self.proves, code=self.code,
        )  # fmt: skip

    @property
    def mebibytes(self) -> int:
        """What a task needs."""
        return self.memory + SUITE_OVERHEAD_MEBIBYTES


class Task(StrictModel):
    """Some sources of one environment, each under all of its solutions: a control proves something only about the
    machine that it differed on.
    """

    environment: Text
    sources: list[Text] = Field(min_length=1)
    seconds: float = Field(description="that it is expected to take")


def plan_tasks(
    matrix: Matrix,
    environments: Iterable[str],
    sources: Sequence[str],
    how: FleetOptions,
    durations: Durations,
    seconds: float,
) -> list[Task]:
    """Longest first, each of about `seconds` where single sources do not take longer."""
    found = []
    for key in environments:
        expected = _expected_seconds(_selected_cells(matrix, key, sources, how), key, how, durations)
        found += [Task(environment=key, sources=some, seconds=round(START_SECONDS + total, 1))
                  for some, total in partition_sources(expected, seconds)]  # fmt: skip
    return sorted(found, key=lambda task: -task.seconds)


def _selected_cells(matrix: Matrix, key: str, sources: Sequence[str], how: FleetOptions) -> list[PlannedCell]:
    chosen = [cell for cell in plan_cells(matrix, key) if cell.device == how.device and cell.reason is None]
    wanted = {"none", *how.solutions} if how.solutions else None
    return [
        cell
        for cell in chosen
        if (not sources or cell.source in sources) and (wanted is None or cell.solution in wanted)
    ]


def _expected_seconds(
    chosen: Iterable[PlannedCell], key: str, how: FleetOptions, durations: Durations
) -> dict[str, float]:
    """{source: seconds}."""
    found: dict[str, float] = defaultdict(float)
    for cell in chosen:
        found[cell.source] += durations.expected_seconds(
            key, cell.device, cell.source, cell.solution, how.repeats * how.processes
        )
    return found


def partition_sources(expected: Mapping[str, float], seconds: float) -> list[tuple[list[str], float]]:
    """The sources in groups of about so many seconds: each goes, the longest first, where there is least."""
    if not expected:
        return []
    number = min(len(expected), max(1, round(sum(expected.values()) / seconds)))
    groups: list[tuple[float, int, list[str]]] = [(0.0, place, []) for place in range(number)]
    for source, takes in sorted(expected.items(), key=lambda item: (-item[1], item[0])):
        total, place, some = groups[0]
        heapq.heapreplace(groups, (total + takes, place, [*some, source]))
    return [(sorted(some), total) for total, _, some in groups if some]
