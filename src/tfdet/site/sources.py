"""The pages of sources of nondeterminism, and their index."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from tfdet.matrix.models import Source
from tfdet.publish.tables import GROUPS
from tfdet.site import framework_lists, links, plots
from tfdet.site.cells import claim_data, cost_data
from tfdet.site.page import Page
from tfdet.site.plots_page import UlpHistogram
from tfdet.site.site_facts import SiteFacts, css_class
from tfdet.site.urls import cell_url
from tfdet.site.wording import VERDICTS
from tfdet.verdicts.audit_findings import count_by_family
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell

_MAX_FAMILIES = 30  # kernels, by name without template arguments, on a page


def pages(facts: SiteFacts, ulps: UlpHistogram) -> Iterator[Page]:
    """Yield the pages.  ulps: the largest differences between runs, in units in the last place."""
    yield _index(facts)
    for key in facts.sources:
        yield _page(facts, key, ulps)


def _index(facts: SiteFacts) -> Page:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key in facts.sources:
        source = facts.matrix.sources[key]
        groups[source.group].append(
            {"key": key, "title": source.title, "api": source.api, "seen": verdict_counts(facts, key)}
        )
    listed = [{"group": group, "title": title, "sources": groups[group]} for group, title in GROUPS.items()]
    return Page(path="sources/index", kind="sources", title="Ops and other sources",
                description="Every known source of nondeterminism, by kind.",
                data={"groups": [group for group in listed if group["sources"]]})  # fmt: skip


def verdict_counts(facts: SiteFacts, source: str) -> dict[str, int]:
    """Return {verdict: number of cells} of the cells that ran."""
    counts: dict[str, int] = defaultdict(int)
    for cell in facts.cells_by_source.get(source, []):
        if cell.was_run:
            counts[str(cell.inferred.verdict)] += 1
    return dict(sorted(counts.items(), key=lambda item: list(VERDICTS).index(item[0])))


def _page(facts: SiteFacts, key: str, ulps: UlpHistogram) -> Page:
    source = facts.matrix.sources[key]
    cells = facts.cells_by_source.get(key, [])
    data = {
        "key": key, "title": source.title, "group": GROUPS[source.group], "api": source.api,
        "direction": source.direction, "condition": source.condition, "raw_ops": source.raw_ops,
        "kernels": source.kernels, "notes": source.notes, "workaround": source.workaround, "cite": source.cite,
        "seen": verdict_counts(facts, key), "strips": list(_verdict_strips(facts, cells)),
        "images": list(_images(facts, cells)),
        "claims": [claim_data(claim) for claim in source.claims], "mend": list(_fix_lines(facts, source)),
        "audit": _audit(facts, key), "costs": [cost_data(cost) for cost in facts.costs_of(key)],
        "slowdowns": list(_slowdowns(cells)),
        "cases": [{"file": case.file, "name": case.name, "text": case.text} for case in facts.cases.get(key, [])],
        "ulp": ulps.data(key),
        "links": [link.data() for link in links.catalogue() if key in link.sources],
        "lists": list(framework_lists.entries_of_source(facts, key)),
    }  # fmt: skip
    return Page(path=f"sources/{key}", kind="source", title=source.title,
                description=f"Is {source.title} deterministic? By version, with evidence, remedy and cost.", data=data,
                template_data={"plot": plots.ulp_dots(ulps.ulp.get(key, {}))})  # fmt: skip


def _verdict_strips(facts: SiteFacts, cells: list[StatusCell]) -> Iterator[dict[str, Any]]:
    """Yield a row for each device and solution, with a square for each stock environment."""
    frameworks = {facts.matrix.environments[cell.key.environment].framework for cell in cells}
    stock = [
        key
        for key, environment in facts.matrix.environments.items()
        if environment.line == "stock" and environment.framework in frameworks
    ]
    rows: dict[tuple[str, str], dict[str, StatusCell]] = defaultdict(dict)
    for cell in cells:
        rows[cell.key.device, cell.key.solution][cell.key.environment] = cell
    for (device, solution), row_cells in sorted(rows.items(), key=lambda row: _order(facts, row[0])):
        if row_cells.keys() & set(stock):
            yield {"device": device, "solution": solution, "cells": [_square(key, row_cells.get(key)) for key in stock]}


def _order(facts: SiteFacts, row: tuple[str, str]) -> tuple[bool, str, int]:
    device, solution = row
    return device == "cpu", device, facts.solutions.index(solution)


def _square(environment: str, cell: StatusCell | None) -> dict[str, Any]:
    version = _VERSION.sub("", environment)
    if cell is None:
        return {
            "environment": environment,
            "version": version,
            "kind": "blank",
            "says": "nothing is known",
            "symbol": "",
            "address": "",
        }
    verdict_text = str(cell.inferred.verdict) or (
        f"claimed {cell.claimed_outcome}" if cell.claimed_outcome else "audited"
    )
    runs = f" {cell.inferred.differed}/{cell.inferred.runs}" if cell.inferred.runs else ""
    return {"environment": environment, "version": version, "kind": css_class(cell),
            "says": f"{verdict_text}{runs}, {cell.backing}", "symbol": symbol(cell),
            "address": cell_url(cell.key)}  # fmt: skip


_VERSION = re.compile(r"^[a-z]+(?=\d)")  # the prefix of an environment's key before its version
# no-solution: documents say that no solution is available.
_CLAIM_SYMBOLS = {"deterministic": "✓", "nondeterministic": "✗", "no-solution": "✗", "raises": "!"}
_VERDICT_SYMBOLS = {Verdict.RAISES: "!", Verdict.FAILED: "#", Verdict.STALE: "~"}


def symbol(cell: StatusCell) -> str:
    """Return one character for the verdict or claim, so that color is not the only sign."""
    if cell.inferred.verdict is not Verdict.BLANK:
        return _VERDICT_SYMBOLS.get(cell.inferred.verdict) or VERDICTS[str(cell.inferred.verdict)].symbol
    return _CLAIM_SYMBOLS[cell.claimed_outcome] if cell.claimed_outcome else "a"


def _images(facts: SiteFacts, cells: list[StatusCell]) -> Iterator[dict[str, Any]]:
    """Yield the cells of NVIDIA's images, merged into version ranges with the same verdict."""
    groups: dict[tuple[str, str, str], list[StatusCell]] = defaultdict(list)
    for cell in cells:
        if facts.matrix.environments[cell.key.environment].line == "ngc":
            verdict_text = str(cell.inferred.verdict) or f"claimed {cell.claimed_outcome}"
            groups[cell.key.device, cell.key.solution, verdict_text].append(cell)
    for (device, solution, verdict_text), group in groups.items():
        yield {"device": device, "solution": solution, "says": verdict_text, "kind": css_class(group[0]),
               "where": facts.where([cell.key.environment for cell in group]), "backing": group[0].backing,
               "address": cell_url(group[-1].key)}  # fmt: skip


def _fix_lines(facts: SiteFacts, source: Source) -> Iterator[dict[str, Any]]:
    """Yield the lines of code that make a source deterministic according to claims."""
    for key in facts.solutions:
        solution = facts.matrix.solutions[key]
        claims = [claim for claim in source.claims if claim.outcome == "deterministic" and key in claim.solutions]
        covered = [
            name
            for name, environment in facts.matrix.environments.items()
            if any(claim.covers(environment) for claim in claims)
        ]
        if covered and solution.recipe:
            yield {"solution": key, "name": solution.name, "where": facts.where(covered), "lines": solution.recipe,
                   "condition": solution.condition}  # fmt: skip


def _audit(facts: SiteFacts, key: str) -> dict[str, Any] | None:
    audited = [name for name in facts.matrix.environments if facts.status.finding(name, key)]
    if not audited:
        return None
    texts: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in audited:
        finding = facts.status.finding(name, key)
        if finding:
            texts[finding.text, finding.reach.how, finding.reach.why].append(name)
    newest = facts.status.finding(audited[-1], key)
    kernels = count_by_family(newest.order_dependent_kernels) if newest else {}
    return {
        "findings": [{"text": text, "reach": how, "why": why, "where": facts.where(names), "environments": names}
                     for (text, how, why), names in texts.items()],
        "newest": audited[-1], "kernels": dict(list(kernels.items())[:_MAX_FAMILIES]),
        "more": max(0, len(kernels) - _MAX_FAMILIES),
    }  # fmt: skip


def _slowdowns(cells: list[StatusCell]) -> Iterator[Mapping[str, Any]]:
    """Yield the run time under each effective solution, relative to the control."""
    for cell in cells:
        if cell.inferred.time_ratio and cell.inferred.is_shown_deterministic:
            yield {"environment": cell.key.environment, "device": cell.key.device, "solution": cell.key.solution,
                   "time_ratio": cell.inferred.time_ratio, "address": cell_url(cell.key)}  # fmt: skip
