"""What a framework's own lists say of its ops: a page an environment, and their list; every row that does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfdet.matrix import ops
from tfdet.matrix.devices import CPU
from tfdet.publish.op_comparison import Disagreement, OpComparison, OpRow
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts


def pages(facts: SiteFacts) -> Iterator[Page]:
    yield _index(facts)
    for join in facts.joins.values():
        yield _page(facts, join)


def _index(facts: SiteFacts) -> Page:
    rows = [
        {"environment": key, "framework": facts.names(key), "ops": len(join.rows),
         "ran": _ran(join)[CPU], "ran_on": _ran(join), "told": len(join.notable_rows),
         "disagreements": len(join.disagreements)}
        for key, join in facts.joins.items()
    ]  # fmt: skip
    return Page(
        "lists/index",
        "lists",
        "What frameworks say of their own ops",
        "Documentation, tags and tests of each build, op by op, beside what was measured; and where they disagree.",
        {"environments": rows},
    )


def _page(facts: SiteFacts, join: OpComparison) -> Page:
    environment = facts.matrix.environments[join.environment]
    name = f"{facts.names(join.environment)} {environment.framework_version}"
    coverage = {
        device: [{"what": what, "ops": number} for what, number in counts] for device, counts in join.coverage.items()
    }
    data = {
        "environment": join.environment,
        "framework": name,
        "commit": join.ops.commit,
        "coverage": coverage[CPU],
        "coverage_on": coverage,
        "solutions": [place.solution for place in join.columns if place.device == CPU],
        "columns": [
            {"device": place.device, "solution": place.solution, "title": place.title} for place in join.columns
        ],
        "tagged": join.tagged,
        "rows": [_row(join, row) for row in join.notable_rows],
        "disagreements": [{**_at(found.row), **data_of(found)} for found in join.disagreements],
    }
    return Page(
        f"lists/{join.environment}",
        "list",
        f"What {name} says of its own ops",
        f"Documentation, tags and tests of {name}, op by op, beside what was measured; and where they disagree.",
        data,
    )


def _at(row: OpRow) -> dict[str, Any]:
    """The op, and its page."""
    return {"op": ops.title(row.op), "source": row.source, "address": f"sources/{row.source}.html"}


def _ran(join: OpComparison) -> dict[str, int]:
    """By device: how many ops."""
    return {device: dict(counts).get("ran", 0) for device, counts in join.coverage.items()}


def _row(join: OpComparison, row: OpRow) -> dict[str, Any]:
    """measured: of the processor, a mark a solution; marks: of all columns."""
    measured = [mark for place, mark in zip(join.columns, row.measured, strict=True) if place.device == CPU]
    return {
        **_at(row),
        **_said(row),
        "measured": measured,
        "marks": row.measured,
        "dtypes": row.dtypes,
        "compiled": row.compiled,
        "binary": row.binary,
        "refuses": row.refusals.replace("`", ""),
    }


def _said(row: OpRow) -> dict[str, Any]:
    return {"documentation": row.documentation_text, "tags": row.op.tags, "tolerance": row.op.tolerance}


def data_of(found: Disagreement) -> dict[str, Any]:
    places = [{"name": name, "address": address} for name, address in found.places]
    return {"text": found.text, "read": found.read, "places": places}


def of_source(facts: SiteFacts, source: str) -> Iterator[dict[str, Any]]:
    """What the lists of each environment say of one op."""
    for environment, row in facts.rows_of.get(source, []):
        found = [one for one in facts.joins[environment].disagreements if one.row is row]
        if row.is_notable:
            yield {"environment": environment, **_said(row), "disagreements": list(map(data_of, found))}
