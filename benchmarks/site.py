"""Time and memory of `tfdet site` on today's evidence and on generated records, and of its big table in Chromium.

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

TABLE_CELLS = 100_000
_QUERIES = ("gather", "gather tf2.6", "nondeterministic", "")


class Memory(threading.Thread):
    """Samples the peak memory of `tfdet site` and its child processes, by proportional set sizes (PSS)."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_gib = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.5):
            self.peak_gib = max(self.peak_gib, sum(_share(path) for path in Path("/proc").glob("[0-9]*")) / 2**20)


def _share(process: Path) -> int:
    """Return the proportional set size in KiB of a `tfdet site` process; 0 for other processes."""
    try:
        if b"tfdet\0site" not in (process / "cmdline").read_bytes():
            return 0
        return int((process / "smaps_rollup").read_text().split("Pss:")[1].split()[0])
    except (OSError, IndexError):
        return 0


def measure_build(name: str, root: Path, out: Path) -> None:
    memory = Memory()
    memory.start()
    seconds, cpu, _ = measure([sys.executable, "-m", "tfdet", "site", "--out", str(out)], root, out.with_name("cache"))
    memory.done.set()
    memory.join()
    pages = [path.stat().st_size for path in out.rglob("*.html")]
    print(f"{name}: {seconds:.0f} s ({cpu:.0f} s of CPU), {memory.peak_gib:.2f} GiB, {len(pages):,} pages, the largest "
          f"{max(pages) / 1000:.0f} KB")  # fmt: skip


def table(out: Path) -> None:
    """Measure the site's own table, with its cells repeated up to TABLE_CELLS."""
    from playwright.sync_api import sync_playwright

    shards = sorted(out.glob("static/table-data-*.json"))
    columns = [json.loads(path.read_text("utf-8")) for path in shards]
    cells = {name: [value for columns_of_shard in columns for value in columns_of_shard[name]] for name in columns[0]}
    repeated_cells = {name: (values * (TABLE_CELLS // len(values) + 1))[:TABLE_CELLS] for name, values in cells.items()}
    text = (out / "table.html").read_text("utf-8")
    tags = [f'<script src="static/table-data-{number}.js" defer></script>' for number in range(len(shards))]
    repeated_tags = [
        f'<script src="static/grown-{number}.js" defer></script>'
        for number in range(-(-TABLE_CELLS // MAX_SHARD_CELLS))
    ]
    for tag in tags[1:]:
        text = text.replace(tag, "")
    (out / "grown.html").write_text(text.replace(tags[0], "\n".join(repeated_tags)), "utf-8")
    for number, columns_of_shard in enumerate(_parts(repeated_cells)):
        (out / f"static/grown-{number}.js").write_text(data_script(f"tfdetCells{number}", columns_of_shard), "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        open_times = []
        for _ in range(3):
            page.goto("about:blank")
            start = time.perf_counter()
            page.goto((out / "grown.html").as_uri())
            page.locator("body[data-ready]").wait_for(state="attached")
            open_times.append(time.perf_counter() - start)
        filter_times = [_measure_filter(page, query) for query in _QUERIES * 3]
        browser.close()
    print(f"table of {TABLE_CELLS:,} cells: opens in {min(open_times):.2f} to {max(open_times):.2f} s, filters in "
          f"{statistics.median(filter_times):.0f} ms, at most {max(filter_times):.0f} ms")  # fmt: skip


def _parts(columns: dict[str, list[Any]]) -> Iterator[dict[str, list[Any]]]:
    for start in range(0, TABLE_CELLS, MAX_SHARD_CELLS):
        yield {name: values[start : start + MAX_SHARD_CELLS] for name, values in columns.items()}


def _measure_filter(page: Any, query: str) -> float:
    """Return the milliseconds from the input to the painted rows."""
    return float(page.evaluate(
        """asked => new Promise(done => {
          const field = document.getElementById("q"), start = performance.now();
          field.value = asked;
          field.dispatchEvent(new Event("input"));
          document.getElementById("table").getBoundingClientRect();
          done(performance.now() - start);
        })""", query))  # fmt: skip


def main() -> None:
    arguments = sys.argv[1:] or ["today", "table", "1000000"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "site"
        if "today" in arguments or "table" in arguments:
            measure_build("today's evidence", find_project().root, out)
        if "table" in arguments:
            table(out)
        for count in (int(argument) for argument in arguments if argument.isdigit()):
            root = Path(folder) / f"project-{count}"
            generate(root, count)
            for name in ("audits", "costs"):
                (root / "matrix" / name).symlink_to(find_project().matrix / name)
            measure_build(f"{count:,} records", root, Path(folder) / "grown")


if __name__ == "__main__":
    main()
