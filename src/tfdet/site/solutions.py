"""A page per solution, and their list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tfdet.matrix.models import Solution
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts, kind, says
from tfdet.site.urls import cell_url
from tfdet.site.wording import VERDICTS


def pages(facts: SiteFacts) -> Iterator[Page]:
    counts: dict[str, Counter[str]] = {key: Counter() for key in facts.solutions}
    for cell in facts.cells:
        if cell.was_run:
            counts[cell.key.solution][str(cell.cell.verdict)] += 1
    rows = [{"key": key, "name": facts.matrix.solutions[key].name,
             "description": facts.matrix.solutions[key].description, "seen": _ordered(counts[key])}
            for key in facts.solutions]  # fmt: skip
    yield Page(
        "solutions/index",
        "solutions",
        "Solutions",
        "What makes a framework deterministic: every known switch.",
        {"solutions": rows},
    )
    for key in facts.solutions:
        yield _page(facts, key, _ordered(counts[key]))


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


# What a page says of a solution as it stands in its file.
_PLAIN_FIELDS = (
    *("name", "description", "condition", "notes", "skip_reason", "recipe"),
    *("includes", "cite", "devices", "is_project_patch", "seed"),
)


def _page(facts: SiteFacts, key: str, seen: dict[str, int]) -> Page:
    solution = facts.matrix.solutions[key]
    data = {
        "key": key,
        **{name: getattr(solution, name) for name in _PLAIN_FIELDS},
        "variables": solution.apply.env if solution.apply else {},
        "available": _available(facts, solution),
        "seen": seen,
        "sources": list(_sources(facts, key)),
    }  # fmt: skip
    return Page(
        f"solutions/{key}",
        "solution",
        f"{key}: {solution.name}",
        f"What {solution.name} makes deterministic in which version, and what it does not.",
        data,
    )


def _available(facts: SiteFacts, solution: Solution) -> str:
    environments = facts.matrix.environments.items()
    mine = ((key, e) for key, e in environments if solution.framework in ("", e.framework))
    return facts.where([key for key, e in mine if solution.available.covers(e)])


def _sources(facts: SiteFacts, key: str) -> Iterator[dict[str, Any]]:
    """What documents and records say of each source under it."""
    for source in facts.sources:
        cells = [cell for cell in facts.by_source.get(source, []) if cell.key.solution == key]
        said: dict[str, list[Any]] = {}
        for cell in cells:
            said.setdefault(f"{cell.key.device}: {says(cell)}", []).append(cell)
        if cells:
            yield {"source": source, "title": facts.matrix.sources[source].title,
                   "says": [{"text": text, "kind": kind(some[0]), "address": cell_url(some[-1].key),
                             "where": facts.where([c.key.environment for c in some])}
                            for text, some in said.items()]}  # fmt: skip
