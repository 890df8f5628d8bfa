"""The big table: every cell, for the table library; columns of small numbers, in files of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tfdet.site.page import Page, data_script
from tfdet.site.site_facts import SiteFacts, kind
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell

MAX_SHARD_CELLS: Final = 12_000  # cells of one file: below 500 KB
_WORDS = ("environment", "source", "solution", "device", "verdict", "backing", "claim", "audit", "kind")


def page(facts: SiteFacts) -> Page:
    scripts = [f"static/table-data-{number}.js" for number in range(_shards(facts))]
    every = ["static/table-words.js", *scripts, "static/tabulator/tabulator.min.js", "static/table.js"]
    return Page("table", "table", "Every cell in one table",
                "Search, filter, sort and group every cell: environment, source, solution, device.",
                {"cells": len(facts.cells), "shards": [f"static/table-data-{n}.json" for n in range(_shards(facts))],
                 "words": "static/table-words.json"}, scripts=tuple(every))  # fmt: skip


def _shards(facts: SiteFacts) -> int:
    return max(1, -(-len(facts.cells) // MAX_SHARD_CELLS))


def data(facts: SiteFacts) -> Iterator[tuple[str, str]]:
    """(name, text) of each file: the words once, then each cell as their numbers."""
    rows = [_row(cell) for cell in sorted(facts.cells, key=lambda cell: _sort_key(facts, cell))]
    words = {name: _distinct_values(facts, name, [row[name] for row in rows]) for name in _WORDS}
    codes = {name: {word: code for code, word in enumerate(some)} for name, some in words.items()}
    titles = [facts.matrix.sources[key].title.replace("`", "") for key in words["source"]]
    apis = [facts.matrix.sources[key].api for key in words["source"]]
    yield from _data_files("static/table-words", "tfdetWords", {"words": words, "titles": titles, "apis": apis})
    for number in range(_shards(facts)):
        some = rows[number * MAX_SHARD_CELLS : (number + 1) * MAX_SHARD_CELLS]
        columns: dict[str, list[Any]] = {name: [codes[name][row[name]] for row in some] for name in _WORDS}
        columns |= {name: [row[name] for row in some] for name in ("runs", "differed", "bound", "time", "machines")}
        yield from _data_files(f"static/table-data-{number}", f"tfdetCells{number}", columns)


def _sort_key(facts: SiteFacts, cell: StatusCell) -> tuple[Any, ...]:
    """What ran comes first, and of that the sources of the seed documents."""
    quiet = cell.cell.verdict in (Verdict.BLANK, Verdict.UNSUPPORTED)
    return quiet, facts.matrix.sources[cell.key.source].sort_key


def _data_files(name: str, variable: str, value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    text = data_script(variable, value)
    yield f"{name}.js", text
    yield f"{name}.json", text.partition("=")[2].rstrip(";\n") + "\n"


def _row(cell: StatusCell) -> dict[str, Any]:
    bound = cell.cell.bound95
    return {
        **cell.key._asdict(), "verdict": str(cell.cell.verdict), "backing": cell.backing,
        "claim": cell.claimed_outcome or "", "audit": cell.finding.kind if cell.finding else "", "kind": kind(cell),
        "runs": cell.cell.runs, "differed": cell.cell.differed, "bound": None if bound is None else round(bound, 4),
        "time": cell.cell.time_ratio, "machines": cell.cell.machines,
    }  # fmt: skip


def _distinct_values(facts: SiteFacts, name: str, values: list[str]) -> list[str]:
    """Numbered in an order that people would sort them in."""
    orders = {"environment": list(facts.matrix.environments), "source": facts.sources, "solution": facts.solutions}
    found = set(values)
    return [word for word in orders[name] if word in found] if name in orders else sorted(found)
