"""The site in a real browser, opened as a file: search, filter, share, follow to a record, accessibility."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import weekly
from axe_playwright_python.sync_playwright import Axe
from browser import needs_browser
from copies import ROOT
from playwright.sync_api import Browser, BrowserContext, Page, expect
from site_builder import OPS, pages

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.site.build import build
from tfdet.store.records import read_records

pytestmark = [needs_browser, pytest.mark.no_cover]  # what runs is the pages
WIDTHS = [390, 900, 1280, 1600]


@pytest.fixture
def window(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Yield a function window(width, scheme) that makes a browser context, whose pages may log no error."""
    opened: list[BrowserContext] = []
    complaints: list[str] = []

    def make(width: int = 1600, scheme: str = "light") -> BrowserContext:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        opened.append(context)
        return context

    yield make
    for context in opened:
        context.close()
    assert complaints == []


def open_page(context: BrowserContext, path: Path, fragment: str = "") -> Page:
    """Open the page, and wait until a table is ready."""
    page = context.new_page()
    page.goto(path.as_uri() + fragment)
    if path.name == "table.html":
        page.locator("body[data-ready]").wait_for(state="attached")
    return page


def one_of_each_kind(site: Path, longest: bool = True) -> dict[str, Path]:
    """Return one page of each kind: the longest, which has most to check, or one of middle length."""
    by_kind: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(pages(site), key=lambda path: path.stat().st_size):
        by_kind[json.loads(path.with_suffix(".json").read_text("utf-8"))["kind"]].append(path)
    return {kind: pages_of_kind[-1 if longest else len(pages_of_kind) // 2] for kind, pages_of_kind in by_kind.items()}


@pytest.mark.parametrize("width", weekly.select_for_today(WIDTHS, days=2))
def test_no_page_is_wider_than_the_window(site: Path, window: Callable[..., BrowserContext], width: int) -> None:
    context = window(width)
    for kind, path in one_of_each_kind(site).items():
        page = open_page(context, path)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= room, (kind, path, wide)
        page.close()


# JavaScript: the elements whose content is wider than they are.
FIND_CUT_ELEMENTS = """
[...document.querySelectorAll("main *")].filter(element =>
    element.scrollWidth > element.clientWidth + 1 && element.querySelector("table, .tabulator-table")
    && getComputedStyle(element).overflowX !== "visible"
).map(element => element.outerHTML.slice(0, 120))
"""


@pytest.mark.parametrize("width", weekly.select_for_today([1280, 1600]))
def test_no_column_is_cut_on_a_desktop(site: Path, window: Callable[..., BrowserContext], width: int) -> None:
    context = window(width)
    documents = {path.stem: path for path in (site / "docs").rglob("*.html") if "<table" in path.read_text("utf-8")}
    for kind, path in {**documents, **one_of_each_kind(site)}.items():
        page = open_page(context, path)
        assert page.evaluate(FIND_CUT_ELEMENTS) == [], (kind, path)
        page.close()


# Give the table of all cells these words, {field: words}, and show its rows anew.
SET_WORDS = """
(longest) => {
    const { words, solutions } = window.tfdetWords;
    for (const [field, texts] of Object.entries(longest)) {
        const shown = field === "solutions" ? solutions : words[field];
        shown.forEach((_, at) => { shown[at] = texts[at % texts.length]; });
    }
    window.tfdetTable.getRows("active").forEach(row => row.reformat());
}
"""
# Cells and headings of the table of all cells that do not show all of their text.
FIND_CUT_CELLS = """
[...document.querySelectorAll("#table .tabulator-cell, #table .tabulator-col-title")].filter(element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const text = range.getBoundingClientRect(), box = element.getBoundingClientRect();
    return box.width && text.width && (text.right > box.right || text.bottom > box.bottom || text.top < box.top
        || element.scrollWidth > element.clientWidth);
}).map(element => element.textContent)
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_each_cell_of_the_table_shows_all_of_its_text(
    site: Path, window: Callable[..., BrowserContext], width: int
) -> None:
    matrix = load_matrix(ROOT / "matrix")
    page = open_page(window(width), site / "table.html")
    assert page.evaluate(FIND_CUT_CELLS) == []
    longest = {
        "environment": sorted(matrix.environments, key=len)[-9:],
        "source": sorted(matrix.sources, key=len)[-9:],
        "solution": sorted(matrix.solutions, key=len)[-9:],
        "device": ["nvidia-h100-80gb-hbm3", "nvidia-rtx-pro-6000-blackwell"],
        "solutions": sorted((solution.name.replace("`", "") for solution in matrix.solutions.values()), key=len)[-9:],
        "verdict": ["schedule-independent", "not shown to differ", "nondeterministic"],
        "backing": ["documented", "emulated", "measured"],
    }
    claimed = {"verdict": [""], "claim": ["nondeterministic"]}
    audited = {"verdict": [""], "claim": [""], "backing": ["audited"], "audit": ["order-dependent"]}
    for words in (longest, claimed, audited):
        page.evaluate(SET_WORDS, words)
        assert page.locator("#table .tabulator-row").count() > 3
        assert page.evaluate(FIND_CUT_CELLS) == []


# Give each row of a table as many columns as the whole matrix gives it, by copies of its third: the site here is small.
ADD_COLUMNS = """
([table, columns]) => document.querySelectorAll(table + " tr").forEach(row => {
    while (row.children.length < columns) row.children[2].after(row.children[2].cloneNode(true));
})
"""


@pytest.mark.parametrize("width", weekly.select_for_today([1280, 1600], first=1))
def test_no_column_of_the_whole_matrix_is_cut(site: Path, window: Callable[..., BrowserContext], width: int) -> None:
    builds = len(list((ROOT / "matrix" / "environments" / "tensorflow").glob("tf*.toml")))
    context = window(width)
    page = open_page(context, site / "sources" / "crop-and-resize-backprop.html")
    # Long names of solutions, devices, states and ops; table.strip: the verdicts of a source in each environment.
    page.locator("table.strip tbody th a").first.evaluate("link => link.textContent = 'XLADET or TDO-FE'")
    page.locator("table.strip tbody td").first.evaluate("cell => cell.textContent = 'nvidia-h100'")
    page.evaluate(ADD_COLUMNS, ["table.strip", builds + 2])
    assert page.locator("table.strip thead th").count() == builds + 2 > 30
    assert page.evaluate(FIND_CUT_ELEMENTS) == []
    page.close()
    page = open_page(context, site / "lists" / f"{OPS}.html")
    row = page.locator("table.list").last.locator("tbody tr").first
    row.locator("td").nth(2).evaluate("cell => cell.textContent = 'nondeterministic_seeded'")
    row.locator("td").last.evaluate("cell => cell.textContent = 'upsample_bilinear2d_aa_backward_out_cuda'")
    columns = page.locator("table.list").last.locator("thead th")
    columns.nth(4).evaluate("heading => heading.textContent = 'CPU, ONETHREAD'")
    while columns.count() < 13:
        page.evaluate(
            "document.querySelectorAll('table.list:has(th:nth-child(9)) tr')"
            ".forEach(row => row.children[5].after(row.children[5].cloneNode(true)))"
        )
    assert page.evaluate(FIND_CUT_ELEMENTS) == []


@pytest.mark.parametrize(("width", "scheme"), [(900, "light"), pytest.param(390, "dark", marks=weekly.ONLY)])
def test_every_kind_of_page_is_accessible(
    site: Path, window: Callable[..., BrowserContext], width: int, scheme: str
) -> None:
    """Axe finds no serious violation: names, roles, contrast, keyboard."""
    context = window(width, scheme)
    for kind, path in one_of_each_kind(site, longest=False).items():
        page = open_page(context, path)
        for details in page.locator("details").all()[:3]:
            details.evaluate("element => { element.open = true }")
        violations = Axe().run(page, options={"preload": False}).response["violations"]
        serious = [
            (v["id"], [node["html"][:160] for node in v["nodes"][:3]])
            for v in violations
            if v["impact"] in ("serious", "critical")
        ]
        assert serious == [], (kind, path)
        page.close()


def table_state(page: Page) -> dict[str, Any]:
    """Return the table's filters, search text, grouping, count and first rows."""
    chosen = {name: page.locator(f"#f-{name}").input_value() for name in ("verdict", "device", "environment")}
    rows = page.locator(".tabulator-row:not(.tabulator-group)").all_inner_texts()
    return {**chosen, "q": page.locator("#q").input_value(), "group": page.locator("#group").input_value(),
            "count": page.locator("#count").inner_text(), "rows": rows[:5]}  # fmt: skip


def test_the_table_opens_on_what_differs(site: Path, window: Callable[..., BrowserContext]) -> None:
    """The first rows differ and show their solution, instead of cells without result."""
    page = open_page(window(), site / "table.html")
    verdicts = page.locator(".tabulator-row .verdict").all_inner_texts()
    assert verdicts[0] == "✗ nondeterministic"
    assert "✓ deterministic" in verdicts[:12]


# A search index with one entry of each kind.
SEARCH_INDEX = {
    "documents": [["docs/how-to/sign-records.html", "Sign records", ["Revoke a key", "revoke-a-key"]]],
    "environments": ["jax0.10", "jax0.12", "ngc19.06-py3", "tf2.0", "torch2.13"],
    "solutions": [],
    "sources": [["jax-sum", "a sum", "", [0, 1]], ["gather", "tf.gather", "", [2, 3]], ["torch-sum", "sum", "", [4]]],
}


def test_the_search_finds_entries_of_each_framework(site: Path, window: Callable[..., BrowserContext]) -> None:
    context = window(WIDTHS[-1])
    context.route(
        "**/search-data.js", lambda route: route.fulfill(body=f"window.tfdetSearch = {json.dumps(SEARCH_INDEX)}")
    )
    start = open_page(context, site / "index.html")
    for query, results in {
        "jax": ["environment jax0.10", "environment jax0.12"],
        "jax 0.12": ["environment jax0.12"],
        "PyTorch 2.13": ["environment torch2.13"],
        "torch2.13 sum": ["sum in torch2.13"],
        "tensorflow gather": ["tf.gather"],
        "gather 2.0": ["tf.gather in tf2.0"],
        "19.06-py3": ["environment ngc19.06-py3"],
        "jax sum": ["a sum"],
        "sum": ["a sum", "sum"],
        "sign": ["Sign records"],
        "KEY": ["Sign records: Revoke a key"],
        "ign": [],
    }.items():
        start.locator("#q").fill(query)
        expect(start.locator("#found a"), query).to_have_text([*results, "look in the table"])


@pytest.mark.parametrize("width", weekly.select_for_today(WIDTHS, days=2, first=1))
def test_following_a_search_result_leads_to_a_record(
    site: Path, window: Callable[..., BrowserContext], width: int
) -> None:
    context = window(width)
    start = open_page(context, site / "index.html")
    start.locator("#q").fill("tf.gather 2.0")
    first = start.locator("#found a").first
    expect(first).to_contain_text("tf2.0")
    first.click()
    expect(start.locator("h1")).to_contain_text("tf.gather")

    table = open_page(context, site / "table.html")
    full_count = table.locator("#count").inner_text()
    table.locator("#q").fill("random-op-without-seed")
    table.locator("#f-device").select_option("cpu")
    table.locator("#f-environment").select_option("tf2.21")
    table.locator("#f-verdict").select_option("nondeterministic")
    table.locator("#group").select_option("solution")
    table.locator(".tabulator-col[tabulator-field=differed]").click()
    expect(table.locator(".tabulator-group").first).to_be_visible()
    before = table_state(table)
    assert before["count"] != full_count and "tf2.21" in before["rows"][0]

    shared = open_page(context, site / "table.html", table.evaluate("location.hash"))
    expect(shared.locator("#count")).to_have_text(before["count"])
    assert table_state(shared) == before and table.evaluate("location.hash").count("=") == 6

    shared.locator(".tabulator-row a").first.click()
    expect(shared.locator("h1")).to_contain_text("tf2.21")
    record = shared.locator("details.record").first
    record.locator("summary").click()
    expect(record.locator(".digest").first).to_be_visible()
    cell = shared.locator("section.cell:target")
    cell.locator("button.copy").click()
    expect(cell.locator("button.copy")).to_have_text("Copied")
    assert clipboard_text(start).startswith("tfdet run tf2.21 --device cpu --source random-op-without-seed")


def clipboard_text(page: Page) -> str:
    """Return the content of the clipboard."""
    page.bring_to_front()
    page.goto(page.url.split("/cells/")[0] + "/index.html")
    page.locator("#q").click()
    page.keyboard.press("Control+V")
    return page.locator("#q").input_value()


def test_the_table_is_operable_by_keyboard(site: Path, window: Callable[..., BrowserContext]) -> None:
    page = open_page(window(), site / "table.html")
    page.keyboard.press("/")
    page.keyboard.type("gather-backprop tf2.0")
    expect(page.locator("#q")).to_have_value("gather-backprop tf2.0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".tabulator-row.active")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/cells/tf2\.0/gather-backprop\.html#"))


def test_the_export_contains_the_filtered_rows(site: Path, window: Callable[..., BrowserContext]) -> None:
    page = open_page(window(), site / "table.html", "#environment=tf2.0&verdict=nondeterministic&hide=audit")
    with page.expect_download() as download:
        page.locator("#export").click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text("utf-8-sig").splitlines()))
    assert f"{len(rows):,} of" in page.locator("#count").inner_text()
    assert {row["Environment"] for row in rows} == {"tf2.0"} and {row["Verdict"] for row in rows} == {
        "nondeterministic"
    }
    assert "Claim" in rows[0] and "Audit" not in rows[0]


def test_markup_in_the_url_is_escaped(site: Path, window: Callable[..., BrowserContext]) -> None:
    hostile = "#q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&group=constructor&sort=__proto__-desc&verdict=none&hide=x.y"
    page = open_page(window(), site / "table.html", hostile)
    assert page.locator("#q").input_value().startswith("<img")
    assert page.locator("#table img").count() == 0


@weekly.on_day(0, days=2)
@pytest.mark.tensorflow
def test_a_copied_command_repeats_the_observation(
    small: Project, site: Path, window: Callable[..., BrowserContext], tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    tf_python("tf2.21")  # makes the environment, or skips the test
    # The fragment names the cell of the device cpu and the solution SEED; its command writes again.jsonl.
    page = open_page(window(), site / "cells" / "tf2.21" / "random-op-without-seed.html", "#cpu.SEED")
    command = shlex.split(page.locator("section.cell:target button.copy").get_attribute("data-copy") or "")
    assert command[0] == "tfdet"
    environ = {
        **os.environ,
        "TFDET_ROOT": str(small.root),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True, timeout=300)
    records_shown = json.loads((site / "cells" / "tf2.21" / "random-op-without-seed.json").read_text("utf-8"))["data"][
        "records"
    ]
    before = {(record["case"], record["solution"]): record["observation"] for record in records_shown}
    repeated = {
        (r.case, r.solution): r.observation for r in read_records(tmp_path / "again.jsonl") if r.solution == "SEED"
    }
    assert repeated and repeated == {key: before[key] for key in repeated}


def test_the_readmes_picture(
    site: Path, window: Callable[..., BrowserContext], checkout: Project, tmp_path: Path
) -> None:
    """TFDET_PICTURE=1 renews the README's picture, from all evidence."""
    full_site = build(checkout, tmp_path / "site").folder if os.environ.get("TFDET_PICTURE") else site
    page = open_page(window(1200), full_site / "sources" / "crop-and-resize-backprop.html")
    page.evaluate("document.querySelector('h2').scrollIntoView()")
    stored = checkout.root / "docs" / "reference" / "site.png"
    picture = stored if os.environ.get("TFDET_PICTURE") else tmp_path / "picture.png"
    page.screenshot(path=str(picture), clip={"x": 0, "y": 0, "width": 1200, "height": 700})
    assert (
        stored.read_bytes()[:8] == picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and stored.stat().st_size < 200_000
    )
