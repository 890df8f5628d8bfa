"""What a framework's own lists say of its ops: a page an environment, and their list; every row that does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfdet.matrix import ops
from tfdet.publish.join import Disagreement, Join, Row
from tfdet.site.facts import Facts
from tfdet.site.page import Page


def pages(facts: Facts) -> Iterator[Page]:
    yield _index(facts)
    for join in facts.joins.values():
        yield _page(facts, join)


def _index(facts: Facts) -> Page:
    rows = [
        {"environment": key, "framework": facts.names(key), "ops": len(join.rows),
         "ran": dict(join.coverage).get("ran", 0), "told": len(join.told), "disagreements": len(join.disagreements)}
        for key, join in facts.joins.items()
    ]  # fmt: skip
    return Page(
        "lists/index",
        "lists",
        "What frameworks say of their own ops",
        "Documentation, tags and tests of each build, op by op, beside what was measured; and where they disagree.",
        {"environments": rows},
    )


def _page(facts: Facts, join: Join) -> Page:
    environment = facts.matrix.environments[join.environment]
    name = f"{facts.names(join.environment)} {environment.framework_version}"
    data = {
        "environment": join.environment,
        "framework": name,
        "commit": join.ops.commit,
        "coverage": [{"what": what, "ops": number} for what, number in join.coverage],
        "solutions": join.solutions,
        "tagged": join.tagged,
        "rows": [_row(row) for row in join.told],
        "disagreements": [{**_at(found.row), **data_of(found)} for found in join.disagreements],
    }
    return Page(
        f"lists/{join.environment}",
        "list",
        f"What {name} says of its own ops",
        f"Documentation, tags and tests of {name}, op by op, beside what was measured; and where they disagree.",
        data,
    )


def _at(row: Row) -> dict[str, Any]:
    """The op, and its page."""
    return {"op": ops.title(row.op), "source": row.source, "address": f"sources/{row.source}.html"}


def _row(row: Row) -> dict[str, Any]:
    return {**_at(row), **_said(row), "measured": row.measured, "binary": row.binary}


def _said(row: Row) -> dict[str, Any]:
    return {"documentation": row.words, "tags": row.op.tags, "tolerance": row.op.tolerance}


def data_of(found: Disagreement) -> dict[str, Any]:
    places = [{"name": name, "address": address} for name, address in found.places]
    return {"text": found.text, "read": found.read, "places": places}


def of_source(facts: Facts, source: str) -> Iterator[dict[str, Any]]:
    """What the lists of each environment say of one op."""
    for environment, row in facts.rows_of.get(source, []):
        found = [one for one in facts.joins[environment].disagreements if one.row is row]
        if row.told:
            yield {"environment": environment, **_said(row), "disagreements": list(map(data_of, found))}
