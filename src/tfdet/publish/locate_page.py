"""The result of `tfdet locate` as a self-contained HTML page.

The command compares traces of runs of a program: records, with digests of ops' outputs, and names the op that differs
first, the culprit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from tfdet.base.files import write_atomic
from tfdet.base.sanitize import escape_hidden
from tfdet.engines.locate import FrontRecord, LocateResult
from tfdet.publish import growth_plot
from tfdeterminism.trace.report import value_text


def label(name: str) -> str:
    """Return the name of a graph's op; empty for an eager op, whose name only repeats its type and line."""
    return "" if "@" in name else name


def html(result: LocateResult) -> str:
    """Return the page, without scripts and without references to other files."""
    engine = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    engine.filters["label"] = label
    engine.filters["magnitude"] = value_text.format_number
    engine.filters["digits"] = lambda value: f"{value:.8g}" if isinstance(value, float) else value
    template = engine.from_string((files("tfdet.publish") / "templates" / "locate.html.j2").read_text("utf-8"))
    plot = growth_plot.plot(result.values.growth) if result.values else None
    window = _window(result.first_difference_window)
    return template.render(result=result, bars=_bars(result), window=window, plot=plot)


def _finalize(value: object) -> object:
    return escape_hidden(value) if type(value) is str else value


def write_html(result: LocateResult, path: Path) -> None:
    write_atomic(path, html(result))


@dataclass(frozen=True)
class Bar:
    """The bar of one step, or of a group of steps; lengths in SVG units."""

    x: float
    width: float
    top: float  # y of its upper end
    share: float  # of the step's records that differ
    label: str


_WIDTH, _HEIGHT = 960.0, 72.0
_BEFORE, _AFTER = 16, 64  # records shown before and after the culprit


def _bars(result: LocateResult) -> list[Bar]:
    """Return a bar for each step with its share of differing records, on a strip of _WIDTH by _HEIGHT."""
    if not result.steps:
        return []
    width = _WIDTH / len(result.steps)
    bars = []
    for number, (step, records, differing) in enumerate(result.steps):
        share = differing / records if records else 0.0
        visible = max(share, 0.06) if differing else 0.0  # a single differing record must be visible, too
        label = f"step {step}: {differing:,} of {records:,} records differ"
        bars.append(Bar(number * width, max(width - min(2.0, width / 4), 0.5), _HEIGHT * (1 - visible), share, label))
    return bars


def _window(records: Sequence[FrontRecord]) -> list[FrontRecord]:
    culprit = next((index for index, record in enumerate(records) if record.state == "culprit"), 0)
    return list(records[max(0, culprit - _BEFORE) : culprit + _AFTER])
