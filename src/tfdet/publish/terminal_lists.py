"""Terminal tables, and lists that need no evidence: they must appear fast, so this module imports nothing slow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from tfdet.base.sanitize import escape_hidden

if TYPE_CHECKING:
    from tfdet.engines.doctor import Check
    from tfdet.matrix.models import Environment


_GAP = 2  # between columns
_MAX_NAMES = 40  # names of a group that are all listed
_MIN_FOLDED_WIDTH = 24  # characters to which the widest column may be folded and stay readable


class FactTable:
    """A table of text, or a list of its rows if the terminal is too narrow.

    It has its own layout because rich's tables took a fifth of the time of `tfdet envs`.
    """

    def __init__(self, *columns: str) -> None:
        self._header = [Text(column, "bold") for column in columns]
        self._rows: list[list[Text]] = []

    def add(self, *row: str | Text) -> None:
        """Add a row; rich's markup in its texts is not interpreted."""
        self._rows.append([Text(escape_hidden(cell)) if isinstance(cell, str) else cell for cell in row])

    def add_heading(self, title: str) -> None:
        """Add a heading for the rows below it, on its own line."""
        self._rows.append([Text(escape_hidden(title), "bold")])

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [self._header, *self._rows] if any(self._header) else self._rows
        full_rows = [row for row in self._rows if len(row) == len(self._header)]
        widths = [max(map(_width, column)) for column in zip(self._header, *full_rows, strict=True)]
        available_width = options.max_width - _GAP * (len(widths) - 1)
        if sum(widths) - max(widths) + min(max(widths), _MIN_FOLDED_WIDTH) > available_width:
            yield from self._render_rows_as_list()
            return
        while sum(widths) > available_width:
            widths[widths.index(max(widths))] -= 1
        for row in rows:
            yield from _lines(console, row, widths if len(row) == len(widths) else [options.max_width])

    def _render_rows_as_list(self) -> Iterator[RenderableType]:
        names = [column.plain.strip() for column in self._header]
        for row in self._rows:
            if len(row) < len(names):
                yield row[0]
                continue
            first, second, *further_cells = row
            named_cells = zip(names[2:], further_cells, strict=True)
            facts = [Text.assemble((f"{name}: " if name else "", "dim"), cell) for name, cell in named_cells if cell]
            yield Text.assemble((first.plain, "bold"), "  ", second)
            if facts:
                yield Padding(Text("; ").join(facts), (0, 0, 0, 4))


def _width(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split("\n")))


def _lines(console: Console, row: Sequence[Text], widths: Sequence[int]) -> Iterator[Segment]:
    folded_cells = [_fold(console, cell, width) for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded_cells, fillvalue=Text()):
        parts: list[Segment] = []
        for cell, width in zip(line, widths, strict=True):
            parts += [*cell.render(console), Segment(" " * (width - cell.cell_len + _GAP))]
        parts[-1] = Segment.line()
        yield from parts


def _fold(console: Console, cell: Text, width: int) -> Sequence[Text]:
    fits = _width(cell) <= width and "\n" not in cell.plain
    return [cell] if fits else list(cell.wrap(console, width, overflow="fold"))


def environments(environments_by_key: Mapping[str, Environment]) -> FactTable:
    table = FactTable("environment", "framework", "CUDA", "cuDNN", "driver", "image")
    for key, environment in environments_by_key.items():
        table.add(key, environment.framework_version, environment.cuda, environment.cudnn, environment.min_driver,
                  environment.image)  # fmt: skip
    return table


def environment_names(environments_by_key: Mapping[str, Environment]) -> RenderableType:
    """Return the names by framework and line on one screen; only the first and last names of a long group.

    The line is who built the framework: `stock`, its project, or `ngc`, NVIDIA.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for key, environment in environments_by_key.items():
        groups.setdefault((environment.framework, environment.line), []).append(key)
    lines: list[RenderableType] = []
    for (framework, line), names in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        lines.append(Text(f"{framework}, {line}: {len(names)}", "bold"))
        listed = names if len(names) <= _MAX_NAMES else [names[0], names[1], "...", names[-2], names[-1]]
        lines.append(Padding(Text("  ".join(listed)), (0, 0, 0, 2), expand=False))
    lines.append(Text("\nall with their versions: tfdet envs --all, or --framework torch; as JSON: --json", "dim"))
    return Group(*lines)


def checks(results: Sequence[Check]) -> FactTable:
    """Return a table of the results of `tfdet doctor`."""
    table = FactTable("", "what", "found", "advice")
    styles = {"ok": "green", "warn": "yellow", "missing": "red"}
    for check in results:
        table.add(Text(check.state, style=styles[check.state]), check.name, check.detail, check.advice)
    return table
