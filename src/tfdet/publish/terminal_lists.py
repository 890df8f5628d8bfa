"""Lists on a terminal that ask no evidence: they come at once, so nothing heavy is imported here."""

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
_MAX_NAMES = 40  # names that are not listed one by one
_MIN_FOLDED_WIDTH = 24  # columns into which the widest cells may be folded and still be read


class FactTable:
    """A table of text; where it is too wide to be read, each of its rows by itself.

    Laid out here: rich's own tables, which are made for more, took a fifth of what `tfdet envs` took.
    """

    def __init__(self, *columns: str) -> None:
        self._header = [Text(column, "bold") for column in columns]
        self._rows: list[list[Text]] = []

    def add(self, *row: str | Text) -> None:
        """Facts as they are: what looks like rich's markup in a record or a claim is text."""
        self._rows.append([Text(escape_hidden(cell)) if isinstance(cell, str) else cell for cell in row])

    def add_heading(self, title: str) -> None:
        """Of the rows below it: on a line of its own, whatever the columns' widths."""
        self._rows.append([Text(escape_hidden(title), "bold")])

    @property
    def is_empty(self) -> bool:
        return not self._rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [self._header, *self._rows] if any(self._header) else self._rows
        whole = [row for row in self._rows if len(row) == len(self._header)]
        widths = [max(map(_widest, column)) for column in zip(self._header, *whole, strict=True)]
        room = options.max_width - _GAP * (len(widths) - 1)
        if sum(widths) - max(widths) + min(max(widths), _MIN_FOLDED_WIDTH) > room:
            yield from self._one_by_one()
            return
        while sum(widths) > room:
            widths[widths.index(max(widths))] -= 1
        for row in rows:
            yield from _lines(console, row, widths if len(row) == len(widths) else [options.max_width])

    def _one_by_one(self) -> Iterator[RenderableType]:
        names = [column.plain.strip() for column in self._header]
        for row in self._rows:
            if len(row) < len(names):
                yield row[0]
                continue
            first, second, *others = row
            named = zip(names[2:], others, strict=True)
            told = [Text.assemble((f"{name}: " if name else "", "dim"), cell) for name, cell in named if cell]
            yield Text.assemble((first.plain, "bold"), "  ", second)
            if told:
                yield Padding(Text("; ").join(told), (0, 0, 0, 4))


def _widest(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split("\n")))


def _lines(console: Console, row: Sequence[Text], widths: Sequence[int]) -> Iterator[Segment]:
    folded = [_folded(console, cell, width) for cell, width in zip(row, widths, strict=True)]
    for line in zip_longest(*folded, fillvalue=Text()):
        parts: list[Segment] = []
        for cell, width in zip(line, widths, strict=True):
            parts += [*cell.render(console), Segment(" " * (width - cell.cell_len + _GAP))]
        parts[-1] = Segment.line()
        yield from parts


def _folded(console: Console, cell: Text, width: int) -> Sequence[Text]:
    fits = _widest(cell) <= width and "\n" not in cell.plain
    return [cell] if fits else list(cell.wrap(console, width, overflow="fold"))


def environments(found: Mapping[str, Environment]) -> FactTable:
    table = FactTable("environment", "framework", "CUDA", "cuDNN", "driver", "image")
    for key, environment in found.items():
        table.add(key, environment.framework_version, environment.cuda, environment.cudnn, environment.min_driver,
                  environment.image)  # fmt: skip
    return table


def environment_names(found: Mapping[str, Environment]) -> RenderableType:
    """One screen: the names by framework and line; of many the first and the last."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, environment in found.items():
        groups.setdefault((environment.framework, environment.line), []).append(key)
    lines: list[RenderableType] = []
    for (framework, line), names in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        lines.append(Text(f"{framework}, {line}: {len(names)}", "bold"))
        shown = names if len(names) <= _MAX_NAMES else [names[0], names[1], "...", names[-2], names[-1]]
        lines.append(Padding(Text("  ".join(shown)), (0, 0, 0, 2), expand=False))
    lines.append(Text("\nall with their versions: tfdet envs --all, or --framework torch; as JSON: --json", "dim"))
    return Group(*lines)


def checks(found: Sequence[Check]) -> FactTable:
    table = FactTable("", "what", "found", "advice")
    styles = {"ok": "green", "warn": "yellow", "missing": "red"}
    for check in found:
        table.add(Text(check.state, style=styles[check.state]), check.name, check.detail, check.advice)
    return table
