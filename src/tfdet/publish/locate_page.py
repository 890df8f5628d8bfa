"""What `tfdet locate` found, as a page by itself."""

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
    """The name of an op of a graph; an eager op's is only its type and line again."""
    return "" if "@" in name else name


def html(found: LocateResult) -> str:
    """A page by itself: no script, nothing from any network."""
    engine = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    engine.filters["label"] = label
    engine.filters["magnitude"] = value_text.format_number
    engine.filters["digits"] = lambda value: f"{value:.8g}" if isinstance(value, float) else value
    template = engine.from_string((files("tfdet.publish") / "templates" / "locate.html.j2").read_text("utf-8"))
    plot = growth_plot.plot(found.values.growth) if found.values else None
    return template.render(found=found, bars=_bars(found), window=_window(found.first_difference_window), plot=plot)


def _finalize(value: object) -> object:
    return escape_hidden(value) if type(value) is str else value


def write_html(found: LocateResult, path: Path) -> None:
    write_atomic(path, html(found))


@dataclass(frozen=True)
class Bar:
    """Neighbouring steps in the picture; lengths in its units."""

    x: float
    width: float
    top: float  # where what differs ends
    share: float
    label: str


_WIDTH, _HEIGHT = 960.0, 72.0
_BEFORE, _AFTER = 16, 64  # records shown around the culprit


def _bars(found: LocateResult) -> list[Bar]:
    """The share of records that differs, step by step, on a strip of _WIDTH by _HEIGHT."""
    if not found.steps:
        return []
    width = _WIDTH / len(found.steps)
    bars = []
    for number, (step, records, differing) in enumerate(found.steps):
        share = differing / records if records else 0.0
        visible = max(share, 0.06) if differing else 0.0  # one record of a thousand must be seen too
        label = f"step {step}: {differing:,} of {records:,} records differ"
        bars.append(Bar(number * width, max(width - min(2.0, width / 4), 0.5), _HEIGHT * (1 - visible), share, label))
    return bars


def _window(records: Sequence[FrontRecord]) -> list[FrontRecord]:
    at = next((n for n, one in enumerate(records) if one.state == "culprit"), 0)
    return list(records[max(0, at - _BEFORE) : at + _AFTER])
