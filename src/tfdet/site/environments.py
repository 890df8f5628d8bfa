"""A page per environment, and their list; the cells of many sources go on further pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tfdet.matrix.models import UNKNOWN
from tfdet.publish.recipe import recipe_text, remaining_rows
from tfdet.site.page import Page, subpages
from tfdet.site.site_facts import SiteFacts, kind, says
from tfdet.site.sources import symbol
from tfdet.site.urls import cell_page_path, cell_url

MAX_PAGE_SOURCES: Final = 300  # sources on one page: below 500 KB with what else there is


def pages(facts: SiteFacts) -> Iterator[Page]:
    yield _index(facts)
    for key in facts.matrix.environments:
        yield from _pages(facts, key)


def _index(facts: SiteFacts) -> Page:
    cells: dict[str, Counter[str]] = {key: Counter() for key in facts.matrix.environments}
    for cell in facts.cells:
        cells[cell.key.environment][cell.backing] += 1
    rows = [
        {"key": key, "line": e.line, "framework": facts.names(key),
         "framework_version": e.framework_version, "python": e.python, "cuda": e.cuda,
         "cudnn": e.cudnn, "min_driver": e.min_driver, "image": e.image, "audited": key in facts.status.audits,
         **{backing: cells[key][backing] for backing in ("measured", "emulated", "documented")}}
        for key, e in facts.matrix.environments.items()
    ]  # fmt: skip
    groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["framework"], row["line"]), []).append(row)
    return Page("environments/index", "environments", "Environments",
                "Every pinned build that this project knows: stock releases and NVIDIA's images.",
                {"environments": rows}, {"groups": list(groups.items())})  # fmt: skip


def _pages(facts: SiteFacts, key: str) -> Iterator[Page]:
    rows = list(_rows(facts, key))
    shards = [rows[start : start + MAX_PAGE_SOURCES] for start in range(0, len(rows), MAX_PAGE_SOURCES)] or [rows]
    environment = facts.matrix.environments[key]
    what = environment.image if environment.image != UNKNOWN else f"{facts.names(key)} {environment.framework_version}"
    (first, *further) = zip(subpages(f"environments/{key}", len(shards)), shards, strict=True)
    turn, shard = first
    yield Page(turn.path, "environment", key, f"How to make {what} deterministic, and which ops stay a source.",
               {**_data(facts, key), "rows": shard, **turn.data})  # fmt: skip
    for turn, shard in further:
        yield Page(turn.path, "environment-cells", f"{key}{turn.suffix}",
                   f"Further sources in {what}, and what is known of each.",
                   {"key": key, "rows": shard, **turn.data})  # fmt: skip


def _data(facts: SiteFacts, key: str) -> dict[str, Any]:
    environment = facts.matrix.environments[key]
    names = ("line", "version", "framework_version", "image", "digest", "python", "os", "cuda", "cudnn", "min_driver",
             "cuda_arch", "notes", "skip_reason", "cite")  # fmt: skip
    return {
        "key": key,
        "framework": facts.names(key),
        "lists": key in facts.joins,
        **{name: getattr(environment, name) for name in names},
        "pip": environment.pip.model_dump(mode="json") if environment.pip else None,
        "recipe": recipe_text(facts.status, key),
        "remaining": remaining_rows(facts.status, key),
        "audited": key in facts.status.audits,
    }  # fmt: skip


def _rows(facts: SiteFacts, key: str) -> Iterator[dict[str, Any]]:
    """A row a source of which anything is known there."""
    for source in facts.sources:
        cells = facts.by_page.get((key, source))
        if cells:
            yield {"source": source, "title": facts.matrix.sources[source].title,
                   "page": cell_page_path(key, source), "cells": [_brief(cell) for cell in cells]}  # fmt: skip


def _brief(cell: Any) -> dict[str, Any]:
    return {"solution": cell.key.solution, "device": cell.key.device, "says": says(cell), "kind": kind(cell),
            "symbol": symbol(cell), "backing": cell.backing, "address": cell_url(cell.key)}  # fmt: skip
