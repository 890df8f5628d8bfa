"""How a difference grows from step to step: a plot on a logarithmic scale, as numbers for a template to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tfdet.engines.locate import Growth, Point
from tfdeterminism.trace.report.value_text import format_number

WIDTH, HEIGHT = 960.0, 250.0
_LEFT, _RIGHT, _TOP = 74.0, 942.0, 14.0  # of the plotting area
_SMALLEST_DECADE_Y, _EQUAL_Y = 176.0, 214.0  # no logarithm of 0: "equal" has a line of its own below the decades
_TICKS = 6


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Series:
    name: str
    line: str  # of a polyline
    dots: list[Dot]


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Plot:
    series: list[Series]
    size_ticks: list[Tick]  # decades, and "equal"
    step_ticks: list[Tick]


def plot(growth: Growth) -> Plot | None:
    """The plot; None if no values were stored, or if no value differs."""
    given = [(name, points) for name, points in (("loss", growth.loss), ("weights", growth.weights)) if points]
    sizes = [float(point.absolute) for _, points in given for point in points if 0 < point.absolute < math.inf]
    if not sizes:
        return None
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    high = max(high, low + 1)
    steps = [point.step for _, points in given for point in points]
    first, last = min(steps), max(steps)

    def x(step: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * ((step - first) / (last - first) if last > first else 0.5)

    def y(size: float) -> float:
        if size == 0:
            return _EQUAL_Y
        return _SMALLEST_DECADE_Y - (_SMALLEST_DECADE_Y - _TOP) * (math.log10(size) - low) / (high - low)

    series = [_series(name, points, [Dot(x(one.step), y(float(one.absolute)), _label(name, one)) for one in points])
              for name, points in given]  # fmt: skip
    every = -(-(high - low) // _TICKS)
    sizes_shown = [Tick(y(10.0**decade), f"1e{decade:+d}") for decade in range(low, high + 1, every)]
    return Plot(series, [*sizes_shown, Tick(_EQUAL_Y, "equal")], [Tick(x(step), str(step)) for step in _shown(steps)])


def _series(name: str, points: Sequence[Point], dots: list[Dot]) -> Series:
    sample = points[-1].compared < points[-1].elements
    told = f"{name} (a sample: {points[-1].compared:,} of {points[-1].elements:,} elements)" if sample else name
    return Series(told, " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in dots), dots)


def _shown(steps: Sequence[int]) -> list[int]:
    """A few of the steps, the first and the last among them."""
    every = sorted(set(steps))
    return sorted({every[round(part * (len(every) - 1) / 7)] for part in range(8)})


def _label(name: str, point: Point) -> str:
    """The tooltip of a dot."""
    if not point.differing:
        return f"step {point.step}: {name} equal"
    return (
        f"step {point.step}: {name} differs by {format_number(point.absolute)} ({point.ulps:,} ulps), "
        f"{point.differing:,} of {point.compared:,} elements, most in {point.name}"
    )
