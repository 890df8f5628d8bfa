"""The page with a table of all cells, whose data is in files of bounded size, as columns of small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tfdet.site.page import Page, data_script
from tfdet.site.site_facts import SiteFacts, css_class
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell

MAX_SHARD_CELLS: Final = 12_000  # cells in one file, which keeps it below 500 KB
_CODED_FIELDS = ("environment", "source", "solution", "device", "verdict", "backing", "claim", "audit", "kind")


def page(facts: SiteFacts) -> Page:
    names = [f"static/table-data-{number}" for number in range(_shard_count(facts))]
    data_scripts = [f"{name}.js" for name in names]
    scripts = ["static/table-words.js", *data_scripts, "static/tabulator/tabulator.min.js", "static/table.js"]
    return Page(path="table", kind="table", title="Every cell in one table",
                description="Search, filter, sort and group every cell: environment, source, solution, device.",
                data={"cells": len(facts.cells), "shards": [f"{name}.json" for name in names],
                 "words": "static/table-words.json"}, scripts=tuple(scripts))  # fmt: skip


def _shard_count(facts: SiteFacts) -> int:
    return max(1, -(-len(facts.cells) // MAX_SHARD_CELLS))


def data(facts: SiteFacts) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each data file: the distinct values of the fields, then the cells as indices into them."""
    rows = [_row(cell) for cell in sorted(facts.cells, key=lambda cell: _sort_key(facts, cell))]
    values = {name: _distinct_values(facts, name, [row[name] for row in rows]) for name in _CODED_FIELDS}
    codes = {name: {value: code for code, value in enumerate(distinct)} for name, distinct in values.items()}
    titles = [facts.matrix.sources[key].title.replace("`", "") for key in values["source"]]
    apis = [facts.matrix.sources[key].api for key in values["source"]]
    solutions = [facts.matrix.solutions[key].name.replace("`", "") for key in values["solution"]]
    texts = {"words": values, "titles": titles, "apis": apis, "solutions": solutions}
    yield from _data_files("static/table-words", "tfdetWords", texts)
    for number in range(_shard_count(facts)):
        shard = rows[number * MAX_SHARD_CELLS : (number + 1) * MAX_SHARD_CELLS]
        columns: dict[str, list[Any]] = {name: [codes[name][row[name]] for row in shard] for name in _CODED_FIELDS}
        columns |= {name: [row[name] for row in shard] for name in ("runs", "differed", "bound", "time", "machines")}
        yield from _data_files(f"static/table-data-{number}", f"tfdetCells{number}", columns)


def _sort_key(facts: SiteFacts, cell: StatusCell) -> tuple[Any, ...]:
    """Return a sort key: cells that ran first, then by source in the order of the tables."""
    has_no_result = cell.inferred.verdict in (Verdict.BLANK, Verdict.UNSUPPORTED)
    return has_no_result, facts.matrix.sources[cell.key.source].sort_key


def _data_files(name: str, variable: str, value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    text = data_script(variable, value)
    yield f"{name}.js", text
    yield f"{name}.json", text.partition("=")[2].rstrip(";\n") + "\n"


def _row(cell: StatusCell) -> dict[str, Any]:
    bound = cell.inferred.bound95
    return {
        **cell.key._asdict(), "verdict": str(cell.inferred.verdict), "backing": cell.backing,
        "claim": cell.claimed_outcome or "", "audit": cell.finding.kind if cell.finding else "",
        "kind": css_class(cell),
        "runs": cell.inferred.runs, "differed": cell.inferred.differed,
        "bound": None if bound is None else round(bound, 4),
        "time": cell.inferred.time_ratio, "machines": cell.inferred.machines,
    }  # fmt: skip


def _distinct_values(facts: SiteFacts, name: str, values: list[str]) -> list[str]:
    """Return the distinct values of a field in a natural order."""
    orders = {"environment": list(facts.matrix.environments), "source": facts.sources, "solution": facts.solutions}
    distinct = set(values)
    return [value for value in orders[name] if value in distinct] if name in orders else sorted(distinct)
