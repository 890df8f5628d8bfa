"""The plan of a fleet, a run of the suite on many machines: tasks of about the same duration.

A task is a part of the cells of one environment, which is one pinned software stack, such as TensorFlow 2.0's.
A cell is a source of nondeterminism under one solution; a solution is what makes the source deterministic. The control,
`none`, is always run with it.
"""

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

SUITE_OVERHEAD_MEBIBYTES = 2048  # memory of the suite itself, in addition to one case
START_SECONDS = 20.0  # to start a built environment: to import its framework, and query its device


class FleetOptions(StrictModel):
    """The options that all tasks of a fleet share.

    repeats: in each process.  timeout (seconds), memory (MiB): limits for one process of one case.  proves: the virtual
    GPU proves that no order of execution gives other bytes.  code: `ptx` or `sass`, which the virtual GPU runs if both
    are there.  multiprocessors: the number that the virtual GPU has.  placement: a seed of
    the addresses of its allocations.
    """

    device: Text
    solutions: list[Text] = Field(default=[], description="empty: all")
    repeats: int = RUN_DEFAULTS.repeats
    processes: int = RUN_DEFAULTS.processes
    timeout: float = RUN_DEFAULTS.seconds
    memory: int = RUN_DEFAULTS.mebibytes
    proves: bool = False
    code: Text | None = None
    multiprocessors: int | None = None
    placement: int | None = None
    engine: Text | None = Field(default=None, description="absent: the environment's default")
    gpu: Text | None = Field(default=None, description="type of GPU to request, as the cluster names it")

    def selection(self, sources: Sequence[str]) -> Selection:
        """Return the selection of these sources with the fleet's options."""
        return Selection(
            device=self.device, sources=tuple(sources), solutions=tuple(self.solutions), repeats=self.repeats,
            processes=self.processes, timeout=self.timeout, memory=self.memory, resume_from_any_machine=True,
            proves=self.proves, code=self.code, multiprocessors=self.multiprocessors, placement=self.placement,
        )  # fmt: skip

    @property
    def mebibytes(self) -> int:
        """Return the memory that a task needs, in MiB."""
        return self.memory + SUITE_OVERHEAD_MEBIBYTES


class Task(StrictModel):
    """Some sources of one environment, each under all of its solutions.

    A source's solutions are not divided among tasks: a control is valid only for records of the same machine.
    """

    environment: Text
    sources: list[Text] = Field(min_length=1)
    seconds: float = Field(description="expected duration")


def plan_tasks(
    matrix: Matrix,
    environments: Iterable[str],
    sources: Sequence[str],
    options: FleetOptions,
    durations: Durations,
    seconds: float,
) -> list[Task]:
    """Plan tasks of about `seconds` each, or longer for a source that takes longer; return the longest first."""
    tasks = []
    for key in environments:
        expected = _expected_seconds(_selected_cells(matrix, key, sources, options), key, options, durations)
        tasks += [Task(environment=key, sources=group, seconds=round(START_SECONDS + total, 1))
                  for group, total in partition_sources(expected, seconds)]  # fmt: skip
    return sorted(tasks, key=lambda task: -task.seconds)


def _selected_cells(matrix: Matrix, key: str, sources: Sequence[str], options: FleetOptions) -> list[PlannedCell]:
    runnable = [cell for cell in plan_cells(matrix, key) if cell.reason is None]
    cells = [cell for cell in runnable if cell.device == options.device]
    solutions = {"none", *options.solutions} if options.solutions else None
    return [
        cell
        for cell in cells
        if (not sources or cell.source in sources) and (solutions is None or cell.solution in solutions)
    ]


def _expected_seconds(
    cells: Iterable[PlannedCell], key: str, options: FleetOptions, durations: Durations
) -> dict[str, float]:
    """Return {source: expected seconds of its cells}."""
    seconds: dict[str, float] = defaultdict(float)
    for cell in cells:
        seconds[cell.source] += durations.expected_seconds(
            key, cell.device, cell.source, cell.solution, options.repeats * options.processes
        )
    return seconds


def partition_sources(expected: Mapping[str, float], seconds: float) -> list[tuple[list[str], float]]:
    """Divide the sources into groups of about `seconds`, and return (sources, seconds) of each.

    Each source, the longest first, is added to the shortest group.
    """
    if not expected:
        return []
    count = min(len(expected), max(1, round(sum(expected.values()) / seconds)))
    groups: list[tuple[float, int, list[str]]] = [(0.0, number, []) for number in range(count)]  # a heap
    for source, source_seconds in sorted(expected.items(), key=lambda item: (-item[1], item[0])):
        total, number, group = groups[0]
        heapq.heapreplace(groups, (total + source_seconds, number, [*group, source]))
    return [(sorted(group), total) for total, _, group in groups if group]
