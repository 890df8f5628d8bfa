"""The pages that compare a framework's own lists of its ops with measurements, for each environment, and their index.

The lists are the framework's documentation, tags and gradient tests.  Contradictions are listed as disagreements.
An op is notable if a list names it, if its kernels add floats atomically, or if it differed or can raise.
"""

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
    for comparison in facts.op_comparisons.values():
        yield _page(facts, comparison)


def _index(facts: SiteFacts) -> Page:
    rows = [
        {"environment": key, "framework": facts.framework_name(key), "ops": len(comparison.rows),
         "ran": _ran_counts(comparison)[CPU], "ran_on": _ran_counts(comparison),
         "notable": len(comparison.notable_rows), "disagreements": len(comparison.disagreements)}
        for key, comparison in facts.op_comparisons.items()
    ]  # fmt: skip
    return Page(
        path="lists/index",
        kind="lists",
        title="What frameworks say of their own ops",
        description=(
            "Documentation, tags and tests of each build, op by op, beside what was measured; and where they disagree."
        ),
        data={"environments": rows},
    )


def _page(facts: SiteFacts, comparison: OpComparison) -> Page:
    environment = facts.matrix.environments[comparison.environment]
    name = f"{facts.framework_name(comparison.environment)} {environment.framework_version}"
    coverage = {
        device: [{"what": outcome, "ops": count} for outcome, count in counts]
        for device, counts in comparison.coverage.items()
    }
    data = {
        "environment": comparison.environment,
        "framework": name,
        "commit": comparison.ops.commit,
        "coverage": coverage[CPU],
        "coverage_on": coverage,
        "solutions": [column.solution for column in comparison.columns if column.device == CPU],
        "columns": [
            {"device": column.device, "solution": column.solution, "title": column.title}
            for column in comparison.columns
        ],
        "tagged_count": comparison.tagged_count,
        "rows": [_row(comparison, row) for row in comparison.notable_rows],
        "disagreements": [
            {**_op_link(disagreement.row), **disagreement_data(disagreement)}
            for disagreement in comparison.disagreements
        ],
    }
    return Page(
        path=f"lists/{comparison.environment}",
        kind="list",
        title=f"What {name} says of its own ops",
        description=(
            f"Documentation, tags and tests of {name}, op by op, beside what was measured; and where they disagree."
        ),
        data=data,
    )


def _op_link(row: OpRow) -> dict[str, Any]:
    """Return an op with the address of its page."""
    return {"op": ops.title(row.op), "source": row.source, "address": f"sources/{row.source}.html"}


def _ran_counts(comparison: OpComparison) -> dict[str, int]:
    """Return {device: number of ops that ran}."""
    return {device: dict(counts).get("ran", 0) for device, counts in comparison.coverage.items()}


def _row(comparison: OpComparison, row: OpRow) -> dict[str, Any]:
    """Return the row of an op.

    measured: its marks on the CPU, one for each solution; marks: those of all columns; dtypes: those that ran on the
    CPU, each with its mark without a solution; compiled: its marks under torch.compile; binary: the number of its
    order-dependent kernels in the build; refuses: the alerts in the framework's source code by which it raises.
    """
    measured = [mark for column, mark in zip(comparison.columns, row.measured, strict=True) if column.device == CPU]
    return {
        **_op_link(row),
        **_list_entries(row),
        "measured": measured,
        "marks": row.measured,
        "dtypes": row.dtypes,
        "compiled": row.compiled,
        "binary": row.binary,
        "refuses": row.raising_alerts.replace("`", ""),
    }


def _list_entries(row: OpRow) -> dict[str, Any]:
    """Return what the framework's lists say about an op.  tolerance: the difference that its tests allow."""
    return {"documentation": row.documentation_text, "tags": row.op.tags, "tolerance": row.op.tolerance}


def disagreement_data(disagreement: Disagreement) -> dict[str, Any]:
    """Return a disagreement.  read: what the framework's source code says about it; places: its lines."""
    places = [{"name": name, "address": address} for name, address in disagreement.places]
    return {"text": disagreement.text, "read": disagreement.read, "places": places}


def entries_of_source(facts: SiteFacts, source: str) -> Iterator[dict[str, Any]]:
    """Yield what the lists of each environment say about one op, and its disagreements."""
    for environment, row in facts.op_rows.get(source, []):
        disagreements = [
            disagreement_data(disagreement)
            for disagreement in facts.op_comparisons[environment].disagreements
            if disagreement.row is row
        ]
        if row.is_notable:
            yield {"environment": environment, **_list_entries(row), "disagreements": disagreements}
