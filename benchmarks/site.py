"""tfdet site: seconds and memory from today's evidence and on generated records; the big table in Chromium.

Usage: python benchmarks/site.py [today] [RECORDS ...] [table]    default: all, with 1000000 records
Promises: <= 60 s from today's evidence; 1,000,000 records in <= 300 s and <= 2 GiB with pages <= 500 KB; the table of
100,000 cells opens in <= 2 s and filters in <= 100 ms.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from status import generate, measure

from tfdet.base.paths import find_project
from tfdet.site.page import data_script
from tfdet.site.table import MAX_SHARD_CELLS

TABLE = 100_000
_ASKED = ("gather", "gather tf2.6", "nondeterministic", "")


class Memory(threading.Thread):
    """The most that a process and its children held at once, by their proportional shares."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.5):
            self.most = max(self.most, sum(_share(path) for path in Path("/proc").glob("[0-9]*")) / 2**20)


def _share(process: Path) -> int:
    """KiB, of a `tfdet site` alone."""
    try:
        if b"tfdet\0site" not in (process / "cmdline").read_bytes():
            return 0
        return int((process / "smaps_rollup").read_text().split("Pss:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def built(name: str, root: Path, out: Path) -> None:
    memory = Memory()
    memory.start()
    seconds, cpu, _ = measure([sys.executable, "-m", "tfdet", "site", "--out", str(out)], root)
    memory.done.set()
    memory.join()
    pages = [path.stat().st_size for path in out.rglob("*.html")]
    print(f"{name}: {seconds:.0f} s ({cpu:.0f} s of CPU), {memory.most:.2f} GiB, {len(pages):,} pages, the largest "
          f"{max(pages) / 1000:.0f} KB")  # fmt: skip


def table(out: Path) -> None:
    """The site's own table, with its cells repeated up to TABLE."""
    from playwright.sync_api import sync_playwright

    shards = sorted(out.glob("static/table-data-*.json"))
    columns = [json.loads(path.read_text("utf-8")) for path in shards]
    whole = {name: [value for part in columns for value in part[name]] for name in columns[0]}
    grown = {name: (values * (TABLE // len(values) + 1))[:TABLE] for name, values in whole.items()}
    text = (out / "table.html").read_text("utf-8")
    tags = [f'<script src="static/table-data-{number}.js" defer></script>' for number in range(len(shards))]
    more = [f'<script src="static/grown-{number}.js" defer></script>' for number in range(-(-TABLE // MAX_SHARD_CELLS))]
    for tag in tags[1:]:
        text = text.replace(tag, "")
    (out / "grown.html").write_text(text.replace(tags[0], "\n".join(more)), "utf-8")
    for number, part in enumerate(_parts(grown)):
        (out / f"static/grown-{number}.js").write_text(data_script(f"tfdetCells{number}", part), "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        opened = []
        for _ in range(3):
            page.goto("about:blank")
            start = time.perf_counter()
            page.goto((out / "grown.html").as_uri())
            page.locator("body[data-ready]").wait_for(state="attached")
            opened.append(time.perf_counter() - start)
        filters = [_filtered(page, asked) for asked in _ASKED * 3]
        browser.close()
    print(f"table of {TABLE:,} cells: opens in {min(opened):.2f} to {max(opened):.2f} s, filters in "
          f"{statistics.median(filters):.0f} ms, at most {max(filters):.0f} ms")  # fmt: skip


def _parts(columns: dict[str, list[Any]]) -> Iterator[dict[str, list[Any]]]:
    for at in range(0, TABLE, MAX_SHARD_CELLS):
        yield {name: values[at : at + MAX_SHARD_CELLS] for name, values in columns.items()}


def _filtered(page: Any, asked: str) -> float:
    """Milliseconds from the input to the painted rows."""
    return float(page.evaluate(
        """asked => new Promise(done => {
          const field = document.getElementById("q"), start = performance.now();
          field.value = asked;
          field.dispatchEvent(new Event("input"));
          document.getElementById("table").getBoundingClientRect();
          done(performance.now() - start);
        })""", asked))  # fmt: skip


def main() -> None:
    asked = sys.argv[1:] or ["today", "table", "1000000"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "site"
        if "today" in asked or "table" in asked:
            built("today's evidence", find_project().root, out)
        if "table" in asked:
            table(out)
        for count in (int(word) for word in asked if word.isdigit()):
            root = Path(folder) / f"project-{count}"
            generate(root, count)
            for name in ("audits", "costs"):
                (root / "matrix" / name).symlink_to(find_project().matrix / name)
            built(f"{count:,} records", root, Path(folder) / "grown")


if __name__ == "__main__":
    main()
