"""The overview of `tfdet status`: sources of nondeterminism by state (see SourceState), framework and device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from tfdet.matrix.load import Matrix, natural_sort_key
from tfdet.matrix.models import NONE
from tfdet.publish.terminal_lists import FactTable
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell


class SourceState(StrEnum):
    """The state of one source on one kind of device: it differs, has a solution, is proved, or is unknown."""

    OPEN = "differs"
    SOLVED = "solved"
    PROVED = "proved"
    UNKNOWN = "unknown"


_STYLE = {SourceState.OPEN: "red", SourceState.SOLVED: "green", SourceState.PROVED: "green", SourceState.UNKNOWN: "dim"}
_READING_ORDER = (SourceState.OPEN, SourceState.SOLVED, SourceState.UNKNOWN, SourceState.PROVED)
_KIND_ORDER = {"gpu": 0, "vgpu": 1, "cpu": 2}  # vgpu: the virtual GPU, an emulator
LEGEND = (
    "Each source in the newest environment that ran it. solved: a solution was seen\n"
    "to work. proved: the same in every order. unknown: not seen to differ, no more."
)
NEXT = (
    ("tfdet status --framework torch --device gpu", "cells of one framework and device"),
    ("tfdet status --source bias-add-backprop", "one source in all environments"),
    ("tfdet show tf2.21 bias-add-backprop", "one cell, its records"),
    ("tfdet recipe tf2.21", "what makes it deterministic"),
    ("tfdet status --all", "every cell"),
)


@dataclass
class OverviewRow:
    """One framework on one kind of device (a name for `--device`)."""

    framework: str
    cli_name: str
    sources: dict[SourceState, list[str]] = field(default_factory=lambda: {state: [] for state in SourceState})


def overview_rows(status: Status) -> list[OverviewRow]:
    """Return a row for each framework and kind of device that ran something: TensorFlow first, and GPUs first."""
    rows: dict[tuple[str, str], OverviewRow] = {}
    for (framework, device, source), cells in _by_source(status, status.cells):
        row = rows.setdefault((framework, device), OverviewRow(framework, device))
        row.sources[_source_state(cells, status.matrix)].append(source)
    sizes = Counter(dict.fromkeys(status.matrix.frameworks, 0))
    for row in rows.values():
        sizes[row.framework] += sum(map(len, row.sources.values()))

    def order(row: OverviewRow) -> tuple[bool, int, int]:
        published = status.matrix.frameworks[row.framework].published
        return not published, -sizes[row.framework], _kind_position(row.cli_name)

    return sorted(rows.values(), key=order)


def in_reading_order(status: Status, cells: Sequence[StatusCell]) -> list[StatusCell]:
    """Return the cells by framework; in it the sources that differ, then the solved ones, then the others.

    A source that was solved on one kind of device and differs on another is one that differs.  Of the others those
    come first that differ in an environment before the newest; of equal ones a GPU's.
    """
    frameworks = list(dict.fromkeys(row.framework for row in overview_rows(status)))
    positions: dict[str, tuple[int, int, bool, int]] = {}
    for (framework, device, source), group in _by_source(status, cells):
        rank = _READING_ORDER.index(_source_state(group, status.matrix))
        differed = any(cell.inferred.verdict is Verdict.NONDETERMINISTIC for cell in group)
        position = frameworks.index(framework), rank, not differed, _kind_position(device)
        positions[source] = min(position, positions.get(source, position))
    return sorted(cells, key=lambda cell: positions[cell.key.source])


def _kind_position(cli_name: str) -> int:
    return _KIND_ORDER.get(cli_name, len(_KIND_ORDER))


def _place(status: Status, cell: StatusCell) -> tuple[str, str, str]:
    """Return (framework, kind of device, source) of a cell."""
    kind = status.matrix.devices.kind(cell.key.device)
    framework = status.matrix.environments[cell.key.environment].framework
    return framework, kind.cli_name if kind else cell.key.device, cell.key.source


def _by_source(status: Status, cells: Iterable[StatusCell]) -> Iterator[tuple[tuple[str, str, str], list[StatusCell]]]:
    """Yield ((framework, kind of device, source), its cells that ran)."""
    place = partial(_place, status)
    ran = sorted((cell for cell in cells if cell.was_run), key=place)
    return ((key, list(cells)) for key, cells in groupby(ran, place))


def _source_state(cells: Sequence[StatusCell], matrix: Matrix) -> SourceState:
    newest = max(
        (cell.key.environment for cell in cells if cell.key.solution == NONE), key=natural_sort_key, default=""
    )
    newest_cells = [cell for cell in cells if cell.key.environment == newest]
    control_verdicts = {cell.inferred.verdict for cell in newest_cells if cell.key.solution == NONE}
    if Verdict.NONDETERMINISTIC not in control_verdicts:
        return SourceState.PROVED if control_verdicts == {Verdict.SCHEDULE_INDEPENDENT} else SourceState.UNKNOWN
    return (
        SourceState.SOLVED if any(cell.inferred.is_shown_deterministic for cell in newest_cells) else SourceState.OPEN
    )


def render(status: Status, width: int) -> RenderableType:
    """Return counts, the names of sources without a solution, and commands for details; fits 80 x 24 characters."""
    counts_table = FactTable("framework", "device", "sources", *SourceState)
    named = [Text("differs, and no solution is known to make it deterministic", "bold")]
    for row in overview_rows(status):
        framework = status.matrix.frameworks[row.framework].name
        numbers = [Text(str(len(row.sources[state])), _STYLE[state]) for state in SourceState]
        counts_table.add(framework, row.cli_name, str(sum(map(len, row.sources.values()))), *numbers)
        if row.sources[SourceState.OPEN]:
            label = f"{framework} {row.cli_name}: "
            named.append(Text(label + _fit_names(row.sources[SourceState.OPEN], width - len(label))))
    longest = max(len(command) for command, _ in NEXT)
    commands = [Text.assemble(f"{command:{longest}}  ", (description, "dim")) for command, description in NEXT]
    return Group(counts_table, Text(LEGEND, "dim"), Text(), *named, Text(), *commands)


def _fit_names(names: Iterable[str], width: int) -> str:
    """Return as many names as fit in one line, and the number of the others."""
    names = list(names)
    for count in range(len(names), 0, -1):
        more = f" +{len(names) - count}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= width:
            return text
    return f"{len(names)}"
