"""Lists on a terminal that ask no evidence: they come at once, so nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdet.visible import visible

if TYPE_CHECKING:
    from tfdet.doctor import Check
    from tfdet.matrix.models import Environment


_GAP = 2  # between columns
_FOLDED = 24  # columns into which the widest cells may be folded and still be read


class _Facts(Table):
    """A table; where it is too wide to be read, each of its rows by itself."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = [_widest([column.header, *column.cells]) for column in self.columns]
        least = sum(widths) - max(widths) + min(max(widths), _FOLDED) + _GAP * (len(widths) - 1)
        yield from super().__rich_console__(console, options) if least <= options.max_width else self._one_by_one()

    def _one_by_one(self) -> Iterator[RenderableType]:
        names = [str(column.header).strip() for column in self.columns]
        for first, second, *others in zip(*(column.cells for column in self.columns), strict=True):
            named = zip(names[2:], others, strict=True)
            told = [
                Text.assemble((f"{name}: " if name else "", "dim"), _text(cell)) for name, cell in named if str(cell)
            ]
            yield Text.assemble((str(first), "bold"), "  ", _text(second))
            if told:
                yield Padding(Text("; ").join(told), (0, 0, 0, 4))


def _text(cell: RenderableType) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


def _widest(cells: Iterable[object]) -> int:
    return max(cell_len(line) for cell in cells for line in str(cell).split("\n"))


def new_table(*columns: str) -> Table:
    table = _Facts(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    return table


def add_row(table: Table, *row: str | Text) -> None:
    """Facts as they are: what looks like rich's markup in a record or a claim is text."""
    table.add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in row))


def environments(found: Mapping[str, Environment]) -> Table:
    table = new_table("environment", "TensorFlow", "CUDA", "cuDNN", "driver", "image")
    for key, environment in found.items():
        add_row(table, key, environment.tensorflow, environment.cuda, environment.cudnn, environment.min_driver,
                environment.image)  # fmt: skip
    return table


def checks(found: Sequence[Check]) -> Table:
    table = new_table("", "what", "found", "advice")
    styles = {"ok": "green", "warn": "yellow", "missing": "red"}
    for check in found:
        add_row(table, Text(check.state, style=styles[check.state]), check.name, check.detail, check.advice)
    return table
