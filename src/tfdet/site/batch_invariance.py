"""The page about batch invariance, with a table for each environment, device and processor."""

from __future__ import annotations

from dataclasses import asdict

from tfdet.publish import batch_invariance
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts


def page(facts: SiteFacts) -> Page:
    tables = [
        {
            "title": table.title,
            "dtypes": table.dtypes,
            "counts": dict(sorted(table.counts.items())),
            "rows": [asdict(row) for row in table.rows],
            "controls": [asdict(row) for row in table.controls],
            "errors": table.errors,
        }
        for table in batch_invariance.tables(facts.project)
    ]
    return Page(
        path="batches",
        kind="batches",
        title="Does a row depend on its batch?",
        description=(
            "Whether the bytes of a row are those that it has alone, op by op, shape by shape and dtype by dtype."
        ),
        data={"tables": tables},
    )
