"""Lists on a terminal that ask no evidence: they come at once, so nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from tfdet.visible import visible

if TYPE_CHECKING:
    from tfdet.doctor import Check
    from tfdet.matrix.models import Environment


def new_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
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
