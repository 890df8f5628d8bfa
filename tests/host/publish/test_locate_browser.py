"""The page of `tfdet locate` in a real browser: plot, values, light and dark scheme, no network access.

The command finds the first op (the culprit) whose output differs between two runs of a program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import needs_browser
from playwright.sync_api import Browser, BrowserContext, Page
from screenshots import share_of_differing_cells
from synthetic import write_trace

from tfdet.engines import locate
from tfdet.publish import growth_plot, locate_page
from tfdeterminism.trace.causes import trace_diff

pytestmark = needs_browser
MAX_DIFFERING_SHARE = 0.02  # share of a picture's cells that may differ
EVIL = '"><img src=x onerror=alert(1)>'


def tensor(op: str, role: str, **changes: Any) -> dict[str, Any]:
    """Return the recorded values of one tensor, as in the JSON of the debug tool.

    role: culprit, loss, or path, which lies between them.
    """
    return {"op": op, "name": f"model/{op}", "file": "train.py", "line": 23, "step": 7, "role": role,
            "dtype": "float32", "shape": [4, 4], "elements": 16, "compared": 16, "differing": 3, "absolute": 0.00012,
            "relative": 0.02, "ulps": 1490, "index": [1, 2], "values_at_index": [0.5, 0.50012], "shapes": None,
            "nonfinite": [None, None], **changes}  # fmt: skip


def values() -> dict[str, Any]:
    """Return the values of three tensors whose difference grows from zero over five decades."""
    grown = [{"step": step, "absolute": 0 if not step else 10.0 ** (step - 8), "ulps": step, "name": "kernel",
              "differing": step, "compared": 64, "elements": 640} for step in range(8)]  # fmt: skip
    loss = [dict(point, absolute=point["absolute"] / 3, name="loss", compared=1, elements=1) for point in grown]
    bad = {"what": "NaN", "name": "model/MatMul", "step": 7, "index": 3, "nan": 2, "inf": 1, "elements": 16}
    tensors = [
        tensor("CropAndResizeGradImage", "culprit"),
        tensor(
            "MatMul",
            "path",
            elements=4096,
            values_at_index=["nan", 1.0],
            nonfinite=[None, {"nan": 2, "inf": 1, "first": 3}],
        ),
        tensor("Mean", "loss", shape=[], elements=1, compared=1, differing=1, absolute=None, ulps=None),
    ]
    return {"tensors": tensors, "growth": {"loss": loss, "weights": grown}, "nonfinite": [None, bad]}


def locate_result(tmp_path: Path, **changes: Any) -> locate.LocateResult:
    """Return the result of comparing two traces that differ at step 7, op 13, with other fields."""
    paths = [tmp_path / name for name in ("a.tfdt", "b.tfdt")]
    for seed, path in enumerate(paths):
        write_trace(str(path), differs=[(7, 13)], seed=seed)
    plain = trace_diff.compare([str(path) for path in paths]).as_json()
    plain["culprits"][0]["snippet"] = [[22, "with tape:"], [23, "    loss = mean(crop(x))"]]
    return locate.parse_result(json.dumps({**plain, "values": values(), **changes}).encode())


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Yield a function show(result, width, scheme) that opens a page, which requests only itself and logs no error."""
    requested_urls: list[str] = []
    complaints: list[str] = []
    opened: list[BrowserContext] = []

    def show(result: locate.LocateResult, width: int = 1100, scheme: str = "light") -> Page:
        path = tmp_path / "report.html"
        locate_page.write_html(result, path)
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.on("request", lambda request: requested_urls.append(request.url))
        context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        opened.append(context)
        page = context.new_page()
        page.goto(path.as_uri())
        return page

    yield show
    for context in opened:
        context.close()
    assert {url.rpartition("/")[2] for url in requested_urls} == {"report.html"}
    assert complaints == []


def test_the_plot_is_drawn(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """Each step is a dot; larger differences are higher, and equal values are on the line for zero."""
    page = open_page(locate_result(tmp_path))
    for name in ("loss", "weights"):
        dots = page.locator(f"svg.plot circle.{name}")
        boxes = [dot.bounding_box() for dot in dots.all()]
        assert len(boxes) == 8
        positions = [(box["x"], box["y"]) for box in boxes if box]
        assert positions == sorted(positions, key=lambda position: position[0])
        heights = [y for _, y in positions]
        assert heights == sorted(heights, reverse=True)
        assert len(set(heights)) == 8
    gaps = [round(above - below, 1) for above, below in pairwise(heights[1:])]
    assert max(gaps) - min(gaps) < 0.5, "a decade is as high as any other"
    labels = page.locator("svg.plot text").all_text_contents()
    assert {"equal", "1e-8", "1e-2", "0", "7"} <= set(labels)
    lines = page.locator("svg.plot polyline").all()
    assert [line.evaluate("line => getComputedStyle(line).fill") for line in lines] == ["none", "none"]
    assert page.locator("svg.plot circle.weights title").last.text_content() == (
        "step 7: weights differs by 0.1 (7 ulps), 7 of 64 elements, most in kernel"
    )
    assert "a sample: 64 of 640 elements" in page.locator("#amounts .legend").inner_text()


def test_the_values_are_reported(open_page: Callable[..., Page], tmp_path: Path) -> None:
    page = open_page(locate_result(tmp_path))
    rows = [row.locator("td").all_inner_texts() for row in page.locator("table.amounts tbody tr").all()]
    assert [row[0].split()[0] for row in rows] == ["CropAndResizeGradImage", "MatMul", "Mean"]
    assert rows[0][1:6] == ["7", "3 of 16", "0.00012", "1,490", "0.02"]
    assert "a sample of 4,096" in rows[1][2] and "B: 2 NaN, 1 infinite" in rows[1][6]
    assert rows[2][3:5] == ["–", "–"]
    assert "Run B: the first NaN is in model/MatMul at step 7" in page.locator("#amounts").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1100, "light"), (1100, "dark"), (390, "dark")])
def test_the_page_is_accessible(open_page: Callable[..., Page], tmp_path: Path, width: int, scheme: str) -> None:
    """Nothing is wider than the window, axe finds no serious violation, and the two schemes differ."""
    page = open_page(locate_result(tmp_path), width, scheme)
    wide, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= room
    serious = [(violation["id"], [node["html"][:120] for node in violation["nodes"][:3]])
               for violation in Axe().run(page, options={"preload": False}).response["violations"]
               if violation["impact"] in ("serious", "critical")]  # fmt: skip
    assert serious == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, background[4:-1].split(","))) < 80) == (scheme == "dark")


# (style, whether the comparison of images must notice it); the last one changes only how letters are drawn.
STYLES_THAT_BREAK_THE_PAGE = [
    ("svg.plot polyline, svg.plot circle { visibility: hidden }", True),
    ("#amounts { display: none }", True),
    ("section:last-of-type { display: none }", True),
    ("* { text-rendering: geometricPrecision }", False),
]
NO_LETTERS = "* { color: transparent !important } svg text { fill: transparent !important }"


def pictures(page: Page) -> dict[str, bytes]:
    """Return images of the whole page and of the plot, without what differs by machine."""
    full_page = page.screenshot(full_page=True, type="jpeg", quality=60)
    plot = page.locator("svg.plot").bounding_box()
    return {"locate.jpg": full_page} if plot is None else {
        "locate.jpg": full_page, "locate-plot.jpg": page.screenshot(full_page=True, type="jpeg", quality=60, clip=plot)}  # type: ignore[arg-type]  # fmt: skip


def test_the_page_looks_like_the_stored_images(
    browser: Browser, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    """TFDET_PICTURE=1 renews the stored images. The test detects missing parts, and ignores how fonts are drawn."""
    page = open_page(locate_result(tmp_path))
    page.add_style_tag(content=NO_LETTERS)
    folder = Path(__file__).parent
    for name, picture in pictures(page).items() if os.environ.get("TFDET_PICTURE") else ():
        (folder / name).write_bytes(picture)
    stored = {name: (folder / name).read_bytes() for name in ("locate.jpg", "locate-plot.jpg")}

    def share() -> float:
        images = pictures(page)
        return max(
            share_of_differing_cells(browser, picture, images[name]) if name in images else 1
            for name, picture in stored.items()
        )

    assert share() < MAX_DIFFERING_SHARE
    for style, is_noticed in STYLES_THAT_BREAK_THE_PAGE:
        added = page.add_style_tag(content=style)
        assert (share() > MAX_DIFFERING_SHARE) == is_noticed, (style, share())
        added.evaluate("style => style.remove()")


def test_untrusted_markup_neither_runs_nor_loads(open_page: Callable[..., Page], tmp_path: Path) -> None:
    """Untrusted markup is text, and the page's own policy blocks injected markup."""
    spoiled = values()
    spoiled["tensors"][0].update(op=EVIL, name=EVIL, values_at_index=[EVIL, EVIL])
    spoiled["growth"]["loss"][7]["name"] = EVIL
    spoiled["nonfinite"][1].update(name=EVIL, what=EVIL)
    page = open_page(locate_result(tmp_path, values=spoiled))
    assert page.locator("img").count() == 0
    assert EVIL in page.locator("table.amounts").inner_text()
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert policy is not None and policy.startswith("default-src 'none'")


def test_the_advice_that_was_tried_is_reported(open_page: Callable[..., Page], tmp_path: Path) -> None:
    runs = {"runs": 5, "identical": 5, "distinct": 1, "seconds": [3.0] * 5}
    lines = ["applied from outside: enable_determinism()", "with it the program repeats itself: 5 of 5 runs end alike"]
    fix = {"result": "repeats", "applied": [{"solution": "ED", "words": "enable_determinism()"}], "ratio": 1.5,
           "error": None, "with": runs, "without": {**runs, "identical": 1, "distinct": 5}, "lines": lines,
           "manual_changes": [{"op_type": "ParallelMap", "file": "train.py", "line": 12, "lines": [EVIL]}]}  # fmt: skip
    text = open_page(locate_result(tmp_path, fix=fix)).locator("#fix").inner_text()
    for words in (
        "repeats itself",
        "5 of 5 runs",
        "1 of 5 runs",
        "1.50 times as long",
        "ParallelMap train.py:12",
        EVIL,
    ):
        assert words in text


def test_a_plot_of_one_step_and_of_none() -> None:
    """One step is one dot; without a difference there is no plot."""
    point = {"step": 3, "absolute": 1e-3, "ulps": 1, "name": "w", "differing": 1, "compared": 1, "elements": 1}
    single_step = growth_plot.plot(locate.Growth.model_validate({"loss": [point], "weights": []}))
    assert (
        single_step is not None
        and len(single_step.series) == 1
        and 0 < single_step.series[0].dots[0].x < growth_plot.WIDTH
    )
    equal = {**point, "absolute": 0, "differing": 0}
    assert growth_plot.plot(locate.Growth.model_validate({"loss": [equal], "weights": []})) is None
