"""The plot of how a difference grows from step to step, on a logarithmic scale, as coordinates for a template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tfdet.engines.locate import Growth, Point
from tfdeterminism.trace.report.value_text import format_number

WIDTH, HEIGHT = 960.0, 250.0  # of the plot, in SVG units
_LEFT, _RIGHT, _TOP = 74.0, 942.0, 14.0  # edges of the plotting area
_SMALLEST_DECADE_Y, _EQUAL_Y = 176.0, 214.0  # equal values have a line below the decades, as 0 has no logarithm
_MAX_TICKS = 6  # decades with a label


@dataclass(frozen=True)
class Dot:
    """A point of a plot.  label: its tooltip."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Series:
    """A line with dots: the loss or the weights."""

    name: str
    line: str  # the points of an SVG polyline
    dots: list[Dot]


@dataclass(frozen=True)
class Tick:
    """A tick of an axis."""

    at: float  # x or y
    label: str


@dataclass(frozen=True)
class Plot:
    """The coordinates of a plot."""

    series: list[Series]
    size_ticks: list[Tick]  # decades, and "equal"
    step_ticks: list[Tick]


def plot(growth: Growth) -> Plot | None:
    """Return the plot; None if no values were stored, or if no value differs."""
    stored = [(name, points) for name, points in (("loss", growth.loss), ("weights", growth.weights)) if points]
    sizes = [float(point.absolute) for _, points in stored for point in points if 0 < point.absolute < math.inf]
    if not sizes:
        return None
    low, high = math.floor(math.log10(min(sizes))), math.ceil(math.log10(max(sizes)))
    high = max(high, low + 1)
    steps = [point.step for _, points in stored for point in points]
    first, last = min(steps), max(steps)

    def x(step: int) -> float:
        return _LEFT + (_RIGHT - _LEFT) * ((step - first) / (last - first) if last > first else 0.5)

    def y(size: float) -> float:
        if size == 0:
            return _EQUAL_Y
        return _SMALLEST_DECADE_Y - (_SMALLEST_DECADE_Y - _TOP) * (math.log10(size) - low) / (high - low)

    def dot(name: str, point: Point) -> Dot:
        return Dot(x(point.step), y(float(point.absolute)), _tooltip(name, point))

    series = [_series(name, points, [dot(name, point) for point in points]) for name, points in stored]
    stride = -(-(high - low) // _MAX_TICKS)
    size_ticks = [Tick(y(10.0**decade), f"1e{decade:+d}") for decade in range(low, high + 1, stride)]
    return Plot(
        series, [*size_ticks, Tick(_EQUAL_Y, "equal")], [Tick(x(step), str(step)) for step in _select_ticks(steps)]
    )


def _series(name: str, points: Sequence[Point], dots: list[Dot]) -> Series:
    is_sample = points[-1].compared < points[-1].elements
    label = f"{name} (a sample: {points[-1].compared:,} of {points[-1].elements:,} elements)" if is_sample else name
    return Series(label, " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in dots), dots)


def _select_ticks(steps: Sequence[int]) -> list[int]:
    """Return up to 8 of the steps, with the first and the last."""
    distinct = sorted(set(steps))
    return sorted({distinct[round(index * (len(distinct) - 1) / 7)] for index in range(8)})


def _tooltip(name: str, point: Point) -> str:
    """Return the tooltip of a dot."""
    if not point.differing:
        return f"step {point.step}: {name} equal"
    return (
        f"step {point.step}: {name} differs by {format_number(point.absolute)} ({point.ulps:,} ulps), "
        f"{point.differing:,} of {point.compared:,} elements, most in {point.name}"
    )
