"""The pages of environments, on several pages if they have many sources, and their index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tfdet.matrix.models import UNKNOWN
from tfdet.publish.recipe import recipe_text, remaining_rows
from tfdet.site.page import Page, subpages
from tfdet.site.site_facts import SiteFacts, cell_text, css_class
from tfdet.site.sources import symbol
from tfdet.site.urls import cell_page_path, cell_url

MAX_PAGE_SOURCES: Final = 300  # sources on one page, which keeps it below 500 KB


def pages(facts: SiteFacts) -> Iterator[Page]:
    yield _index(facts)
    for key in facts.matrix.environments:
        yield from _pages(facts, key)


def _index(facts: SiteFacts) -> Page:
    cells: dict[str, Counter[str]] = {key: Counter() for key in facts.matrix.environments}
    for cell in facts.cells:
        cells[cell.key.environment][cell.backing] += 1
    rows = [
        {"key": key, "line": environment.line, "framework": facts.framework_name(key),
         "framework_version": environment.framework_version, "python": environment.python, "cuda": environment.cuda,
         "cudnn": environment.cudnn, "min_driver": environment.min_driver, "image": environment.image,
         "audited": key in facts.status.audits,
         **{backing: cells[key][backing] for backing in ("measured", "emulated", "documented")}}
        for key, environment in facts.matrix.environments.items()
    ]  # fmt: skip
    groups: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["framework"], row["line"]), []).append(row)
    return Page(path="environments/index", kind="environments", title="Environments",
                description="Every pinned build that this project knows: stock releases and NVIDIA's images.",
                data={"environments": rows}, template_data={"groups": list(groups.items())})  # fmt: skip


def _pages(facts: SiteFacts, key: str) -> Iterator[Page]:
    rows = list(_rows(facts, key))
    shards = [rows[start : start + MAX_PAGE_SOURCES] for start in range(0, len(rows), MAX_PAGE_SOURCES)] or [rows]
    environment = facts.matrix.environments[key]
    name = (
        environment.image
        if environment.image != UNKNOWN
        else f"{facts.framework_name(key)} {environment.framework_version}"
    )
    (first, *further) = zip(subpages(f"environments/{key}", len(shards)), shards, strict=True)
    subpage, shard = first
    yield Page(path=subpage.path, kind="environment", title=key,
               description=f"How to make {name} deterministic, and which ops stay a source.",
               data={**_data(facts, key), "rows": shard, **subpage.data})  # fmt: skip
    for subpage, shard in further:
        yield Page(path=subpage.path, kind="environment-cells", title=f"{key}{subpage.suffix}",
                   description=f"Further sources in {name}, and what is known of each.",
                   data={"key": key, "rows": shard, **subpage.data})  # fmt: skip


def _data(facts: SiteFacts, key: str) -> dict[str, Any]:
    environment = facts.matrix.environments[key]
    names = ("line", "version", "framework_version", "image", "digest", "python", "os", "cuda", "cudnn", "min_driver",
             "cuda_arch", "notes", "skip_reason", "cite")  # fmt: skip
    return {
        "key": key,
        "framework": facts.framework_name(key),
        "lists": key in facts.op_comparisons,  # whether a page compares the framework's lists of ops with runs
        **{name: getattr(environment, name) for name in names},
        "pip": environment.pip.model_dump(mode="json") if environment.pip else None,
        "recipe": recipe_text(facts.status, key),
        "remaining": remaining_rows(facts.status, key),
        "audited": key in facts.status.audits,
    }  # fmt: skip


def _rows(facts: SiteFacts, key: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each source that has cells in the environment."""
    for source in facts.sources:
        cells = facts.cells_by_page.get((key, source))
        if cells:
            yield {"source": source, "title": facts.matrix.sources[source].title,
                   "page": cell_page_path(key, source), "cells": [_brief(cell) for cell in cells]}  # fmt: skip


def _brief(cell: Any) -> dict[str, Any]:
    return {"solution": cell.key.solution, "device": cell.key.device, "says": cell_text(cell), "kind": css_class(cell),
            "symbol": symbol(cell), "backing": cell.backing, "address": cell_url(cell.key)}  # fmt: skip
