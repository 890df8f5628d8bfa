"""One screen for each framework and kind of device: what differs, what has a solution, what is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from rich.console import Group, RenderableType
from rich.text import Text

from tfdet.matrix.load import Matrix, natural_sort_key
from tfdet.matrix.models import NONE
from tfdet.publish.terminal_lists import FactTable
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import Status, StatusCell


class SourceState(StrEnum):
    """Whether one source differs on one kind of device, and whether a solution helps."""

    OPEN = "differs"
    MENDED = "mended"
    PROVED = "proved"
    UNKNOWN = "unknown"


_STYLE = {SourceState.OPEN: "red", SourceState.MENDED: "green", SourceState.PROVED: "green", SourceState.UNKNOWN: "dim"}
_KIND_ORDER = {"gpu": 0, "vgpu": 1, "cpu": 2}
LEGEND = (
    "Each source in the newest environment that ran it. mended: a solution was seen\n"
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
    sources: dict[SourceState, list[str]] = field(default_factory=lambda: {answer: [] for answer in SourceState})


def overview_rows(found: Status) -> list[OverviewRow]:
    """Every framework and kind of device that ran something: TensorFlow first, cards before emulation and CPUs."""
    made: dict[tuple[str, str], OverviewRow] = {}
    for (framework, word, source), cells in _by_source(found):
        part = made.setdefault((framework, word), OverviewRow(framework, word))
        part.sources[_source_state(cells, found.matrix)].append(source)
    sizes = Counter(dict.fromkeys(found.matrix.frameworks, 0))
    for part in made.values():
        sizes[part.framework] += sum(map(len, part.sources.values()))

    def order(part: OverviewRow) -> tuple[bool, int, int]:
        published = found.matrix.frameworks[part.framework].published
        return not published, -sizes[part.framework], _KIND_ORDER.get(part.cli_name, len(_KIND_ORDER))

    return sorted(made.values(), key=order)


def _by_source(found: Status) -> Iterator[tuple[tuple[str, str, str], list[StatusCell]]]:
    def place(cell: StatusCell) -> tuple[str, str, str]:
        kind = found.matrix.devices.kind(cell.key.device)
        framework = found.matrix.environments[cell.key.environment].framework
        return framework, kind.cli_name if kind else cell.key.device, cell.key.source

    seen = sorted((cell for cell in found.cells if cell.was_run), key=place)
    return ((key, list(cells)) for key, cells in groupby(seen, place))


def _source_state(cells: Sequence[StatusCell], matrix: Matrix) -> SourceState:
    newest = max(
        (cell.key.environment for cell in cells if cell.key.solution == NONE), key=natural_sort_key, default=""
    )
    here = [cell for cell in cells if cell.key.environment == newest]
    control = {cell.cell.verdict for cell in here if cell.key.solution == NONE}
    if Verdict.NONDETERMINISTIC not in control:
        return SourceState.PROVED if control == {Verdict.SCHEDULE_INDEPENDENT} else SourceState.UNKNOWN
    return SourceState.MENDED if any(cell.cell.is_shown_deterministic for cell in here) else SourceState.OPEN


def render(found: Status, width: int) -> RenderableType:
    """Counts, the names of sources without a solution, and commands for details; fits 80 x 24 characters."""
    counted = FactTable("framework", "device", "sources", *SourceState)
    named = [Text("differs, and no solution is known to make it deterministic", "bold")]
    for part in overview_rows(found):
        framework = found.matrix.frameworks[part.framework].name
        numbers = [Text(str(len(part.sources[answer])), _STYLE[answer]) for answer in SourceState]
        counted.add(framework, part.cli_name, str(sum(map(len, part.sources.values()))), *numbers)
        if part.sources[SourceState.OPEN]:
            label = f"{framework} {part.cli_name}: "
            named.append(Text(label + _fitted(part.sources[SourceState.OPEN], width - len(label))))
    longest = max(len(command) for command, _ in NEXT)
    further = [Text.assemble(f"{command:{longest}}  ", (what, "dim")) for command, what in NEXT]
    return Group(counted, Text(LEGEND, "dim"), Text(), *named, Text(), *further)


def _fitted(names: Iterable[str], width: int) -> str:
    """As many names as fit in one line, and the number of the others."""
    names = list(names)
    for count in range(len(names), 0, -1):
        more = f" +{len(names) - count}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= width:
            return text
    return f"{len(names)}"
