"""Plots as SVG elements for a page: drawn by matplotlib, colored by the page's style sheet."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from markupsafe import Markup, escape

from tfdet.base.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
# {CSS class: a placeholder color that the class replaces, so that a plot is light or dark as its page is}
_INK: Final = {"ink": "#010101", "measured": "#010102", "emulated": "#010103", "audited": "#010104",
               "documented": "#010105", "blank": "#010106", "bad": "#010107", "grid": "#010108"}  # fmt: skip
_CLASSES: Final = {color: name for name, color in _INK.items()}
_NO_METADATA = dict.fromkeys(["Date", "Creator", "Format", "Type"])  # left out, so that the bytes are reproducible
_POWERS = ["1 ulp", "16", "256", "4096", "2^16", "2^24", "2^32", "2^48", "2^64"]
_MAX_ROWS = 40  # rows of a plot


def _figure(height: float, left: float = 0.12) -> tuple[Figure, Axes]:
    require("matplotlib")
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 10})
    figure = Figure(figsize=(9, height))
    axes = figure.subplots()
    figure.subplots_adjust(left=left, right=0.98, top=1 - 0.25 / height, bottom=0.55 / height)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for spine in axes.spines.values():
        spine.set_color(_INK["grid"])
    axes.tick_params(colors=_INK["ink"], which="both", length=0)
    axes.set_axisbelow(True)
    return figure, axes


def atomics(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Plot the number of order-dependent kernels: a bar for each build."""
    figure, axes = _figure(3.6)
    axes.bar([row["build"] for row in rows], [row["order_dependent"] for row in rows], color=_INK["bad"], width=0.7)
    axes.grid(axis="y", color=_INK["grid"], linewidth=0.6)
    axes.tick_params(axis="x", rotation=90)
    figure.subplots_adjust(bottom=0.22)
    return _svg(figure, "atomics", "kernels whose result depends on the order of threads, by build")


def coverage(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Plot the sources by their best backing: a stacked bar for each environment."""
    figure, axes = _figure(3.8)
    names = [row["environment"] for row in rows]
    bottom = [0] * len(rows)
    for kind in ("measured", "emulated", "audited", "documented", "blank"):
        values = [row[kind] for row in rows]
        axes.bar(names, values, bottom=bottom, color=_INK[kind], width=0.75, label=kind)
        bottom = [base + value for base, value in zip(bottom, values, strict=True)]
    axes.tick_params(axis="x", rotation=90)
    figure.subplots_adjust(bottom=0.22)
    return _svg(figure, "coverage", "sources by the best kind of backing, by environment")


def costs(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Plot the time ratios of replaced ops: a row for each op, a point for each environment."""
    patches = sorted({row["patch"] for row in rows}, reverse=True)
    figure, axes = _figure(max(1.6, 0.36 * len(patches) + 0.9), left=0.24)
    axes.axvline(1, color=_INK["ink"], linewidth=0.8)
    axes.scatter(
        [row["time_ratio"] for row in rows],
        [patches.index(row["patch"]) for row in rows],
        s=34,
        color=_INK["measured"],
        alpha=0.55,
        linewidths=0,
    )
    axes.set_yticks(range(len(patches)), patches)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"× {value:g}")
    axes.grid(axis="x", color=_INK["grid"], linewidth=0.6)
    return _svg(figure, "costs", "time of the deterministic form by the time of the original op")


def ulp_dots(cells: Mapping[tuple[str, str, str], Mapping[int, int]]) -> Markup:
    """Plot differences in ulps: a row for each cell, a dot for each power of two, sized by the number of records."""
    return _dots({" ".join(key): counts for key, counts in list(cells.items())[:_MAX_ROWS]}, "apart")


def ulp_dots_all(sources: Mapping[str, Mapping[int, int]]) -> Markup:
    """Plot differences in ulps: a row for each source."""
    return _dots(sources, "all")


def _dots(rows: Mapping[str, Mapping[int, int]], name: str) -> Markup:
    if not rows:
        return Markup("")
    names = list(rows)[::-1]
    figure, axes = _figure(0.27 * len(names) + 1.0, left=0.34)
    points = [(power, names.index(key), count) for key, counts in rows.items() for power, count in counts.items()]
    axes.scatter(
        [power for power, _, _ in points],
        [row for _, row, _ in points],
        s=[18 + 9 * min(count, 30) for *_, count in points],
        color=_INK["bad"],
        alpha=0.5,
        linewidths=0,
    )
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlim(-1, 65)
    axes.set_xticks([0, 4, 8, 12, 16, 24, 32, 48, 64], _POWERS)
    axes.grid(axis="x", color=_INK["grid"], linewidth=0.6)
    return _svg(figure, name, "largest difference in units in the last place, by cell")


def _svg(figure: Figure, name: str, label: str) -> Markup:
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata=_NO_METADATA)
    root = ElementTree.fromstring(out.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}style",) or not child.tag.startswith(_SVG) or child.tag == f"{_SVG}metadata":
                parent.remove(child)
    for element in root.iter():
        _simplify(element, name)
    box = root.get("viewBox")
    body = "".join(ElementTree.tostring(child, "unicode") for child in root)
    return Markup('<svg role="img" aria-label="{}" viewBox="{}">{}</svg>').format(escape(label), box, Markup(body))


def _simplify(element: ElementTree.Element, name: str) -> None:
    """Replace the style attribute, which the security policy forbids; use CSS classes for colors, and unique ids."""
    element.tag = element.tag.removeprefix(_SVG)
    classes = []
    style = element.attrib.pop("style", "")
    for declaration in filter(None, (text.strip() for text in style.split(";"))):
        key, _, value = declaration.partition(":")
        _set_attribute(element, key.strip(), value.strip())
    for key in ("fill", "stroke"):
        if css_class := _CLASSES.get(element.get(key, "")):
            classes.append(f"{key}-{css_class}")
    if classes:
        element.set("class", " ".join(classes))
    if target := element.attrib.pop(_LINK, None):
        element.set("href", f"#{name}-{target[1:]}")
    if clip_path := element.get("clip-path"):
        element.set("clip-path", clip_path.replace("#", f"#{name}-"))
    identity = element.attrib.pop("id", None)
    if identity and element.tag in ("clipPath", "path"):
        element.set("id", f"{name}-{identity}")


_FONT = re.compile(r"([\d.]+)px")


def _set_attribute(element: ElementTree.Element, key: str, value: str) -> None:
    """Set an SVG attribute from a style declaration; of a font only the size, as the page has its own font."""
    if key in ("font", "font-size"):
        size = _FONT.search(value)
        element.set("font-size", size[1] if size else "10")
    elif not key.startswith("font"):
        element.set(key, value)
