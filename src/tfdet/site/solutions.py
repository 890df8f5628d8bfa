"""The pages of solutions, and their index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tfdet.matrix.models import Solution
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts, cell_text, css_class
from tfdet.site.urls import cell_url
from tfdet.site.wording import VERDICTS


def pages(facts: SiteFacts) -> Iterator[Page]:
    counts: dict[str, Counter[str]] = {key: Counter() for key in facts.solutions}
    for cell in facts.cells:
        if cell.was_run:
            counts[cell.key.solution][str(cell.inferred.verdict)] += 1
    rows = [{"key": key, "name": facts.matrix.solutions[key].name,
             "description": facts.matrix.solutions[key].description, "seen": _sort_counts(counts[key])}
            for key in facts.solutions]  # fmt: skip
    yield Page(
        path="solutions/index",
        kind="solutions",
        title="Solutions",
        description="What makes a framework deterministic: every known switch.",
        data={"solutions": rows},
    )
    for key in facts.solutions:
        yield _page(facts, key, _sort_counts(counts[key]))


def _sort_counts(counts: Counter[str]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


# The fields of a solution that its page shows unchanged.
_PLAIN_FIELDS = (
    *("name", "description", "condition", "notes", "skip_reason", "recipe"),
    *("includes", "cite", "devices", "is_project_patch", "seed"),
)


def _page(facts: SiteFacts, key: str, counts: dict[str, int]) -> Page:
    solution = facts.matrix.solutions[key]
    data = {
        "key": key,
        **{name: getattr(solution, name) for name in _PLAIN_FIELDS},
        "variables": solution.apply.env if solution.apply else {},
        "available": _available(facts, solution),
        "seen": counts,
        "sources": list(_sources(facts, key)),
    }  # fmt: skip
    return Page(
        path=f"solutions/{key}",
        kind="solution",
        title=f"{key}: {solution.name}",
        description=f"What {solution.name} makes deterministic in which version, and what it does not.",
        data=data,
    )


def _available(facts: SiteFacts, solution: Solution) -> str:
    environments = facts.matrix.environments.items()
    of_framework = (
        (key, environment) for key, environment in environments if solution.framework in ("", environment.framework)
    )
    return facts.where([key for key, environment in of_framework if solution.available.covers(environment)])


def _sources(facts: SiteFacts, key: str) -> Iterator[dict[str, Any]]:
    """Yield the verdicts and claims on each source under a solution."""
    for source in facts.sources:
        cells = [cell for cell in facts.cells_by_source.get(source, []) if cell.key.solution == key]
        cells_by_text: dict[str, list[Any]] = {}
        for cell in cells:
            cells_by_text.setdefault(f"{cell.key.device}: {cell_text(cell)}", []).append(cell)
        if cells:
            yield {"source": source, "title": facts.matrix.sources[source].title,
                   "says": [{"text": text, "kind": css_class(group[0]), "address": cell_url(group[-1].key),
                             "where": facts.where([cell.key.environment for cell in group])}
                            for text, group in cells_by_text.items()]}  # fmt: skip
