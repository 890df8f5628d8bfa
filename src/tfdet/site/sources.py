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
from tfdet.site.site_facts import SiteFacts, kind
from tfdet.site.urls import cell_url
from tfdet.site.wording import VERDICTS
from tfdet.verdicts.audit_findings import count_by_family
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status import StatusCell

_FAMILIES = 30  # of kernels on a page


def pages(facts: SiteFacts, apart: UlpHistogram) -> Iterator[Page]:
    """apart: largest differences between runs, in units in the last place."""
    yield _index(facts)
    for key in facts.sources:
        yield _page(facts, key, apart)


def _index(facts: SiteFacts) -> Page:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key in facts.sources:
        source = facts.matrix.sources[key]
        groups[source.group].append(
            {"key": key, "title": source.title, "api": source.api, "seen": verdict_counts(facts, key)}
        )
    listed = [{"group": group, "title": title, "sources": groups[group]} for group, title in GROUPS.items()]
    return Page("sources/index", "sources", "Ops and other sources", "Every known source of nondeterminism, by kind.",
                {"groups": [one for one in listed if one["sources"]]})  # fmt: skip


def verdict_counts(facts: SiteFacts, source: str) -> dict[str, int]:
    """{verdict: number of cells} of the cells that ran."""
    found: dict[str, int] = defaultdict(int)
    for cell in facts.by_source.get(source, []):
        if cell.was_run:
            found[str(cell.cell.verdict)] += 1
    return dict(sorted(found.items(), key=lambda item: list(VERDICTS).index(item[0])))


def _page(facts: SiteFacts, key: str, apart: UlpHistogram) -> Page:
    source = facts.matrix.sources[key]
    cells = facts.by_source.get(key, [])
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
        "ulp": apart.data(key),
        "links": [link.data() for link in links.catalogue() if key in link.sources],
        "lists": list(framework_lists.of_source(facts, key)),
    }  # fmt: skip
    return Page(f"sources/{key}", "source", source.title,
                f"Is {source.title} deterministic? By version, with evidence, remedy and cost.", data,
                {"plot": plots.ulp_dots(apart.ulp.get(key, {}))})  # fmt: skip


def _verdict_strips(facts: SiteFacts, cells: list[StatusCell]) -> Iterator[dict[str, Any]]:
    """One row for each device and solution, one square for each stock environment."""
    frameworks = {facts.matrix.environments[cell.key.environment].framework for cell in cells}
    stock = [key for key, e in facts.matrix.environments.items() if e.line == "stock" and e.framework in frameworks]
    rows: dict[tuple[str, str], dict[str, StatusCell]] = defaultdict(dict)
    for cell in cells:
        rows[cell.key.device, cell.key.solution][cell.key.environment] = cell
    for (device, solution), mine in sorted(rows.items(), key=lambda row: _order(facts, row[0])):
        if mine.keys() & set(stock):
            yield {"device": device, "solution": solution, "cells": [_square(key, mine.get(key)) for key in stock]}


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
    says = str(cell.cell.verdict) or (f"claimed {cell.claimed_outcome}" if cell.claimed_outcome else "audited")
    runs = f" {cell.cell.differed}/{cell.cell.runs}" if cell.cell.runs else ""
    return {"environment": environment, "version": version, "kind": kind(cell), "says": f"{says}{runs}, {cell.backing}",
            "symbol": symbol(cell), "address": cell_url(cell.key)}  # fmt: skip


_VERSION = re.compile(r"^[a-z]+(?=\d)")  # the prefix of an environment's key before its version
_SAID = {"deterministic": "✓", "nondeterministic": "✗", "no-solution": "✗", "raises": "!"}
_SHORT = {Verdict.RAISES: "!", Verdict.FAILED: "#", Verdict.STALE: "~"}


def symbol(cell: StatusCell) -> str:
    """One character for the verdict, so that color is not the only sign."""
    if cell.cell.verdict is not Verdict.BLANK:
        return _SHORT.get(cell.cell.verdict) or VERDICTS[str(cell.cell.verdict)].symbol
    return _SAID[cell.claimed_outcome] if cell.claimed_outcome else "a"


def _images(facts: SiteFacts, cells: list[StatusCell]) -> Iterator[dict[str, Any]]:
    """Cells of NVIDIA's images, joined into version ranges with the same verdict."""
    found: dict[tuple[str, str, str], list[StatusCell]] = defaultdict(list)
    for cell in cells:
        if facts.matrix.environments[cell.key.environment].line == "ngc":
            says = str(cell.cell.verdict) or f"claimed {cell.claimed_outcome}"
            found[cell.key.device, cell.key.solution, says].append(cell)
    for (device, solution, says), mine in found.items():
        yield {"device": device, "solution": solution, "says": says, "kind": kind(mine[0]),
               "where": facts.where([cell.key.environment for cell in mine]), "backing": mine[0].backing,
               "address": cell_url(mine[-1].key)}  # fmt: skip


def _fix_lines(facts: SiteFacts, source: Source) -> Iterator[dict[str, Any]]:
    """Lines of code that make the source deterministic, with the documents that say so."""
    for key in facts.solutions:
        solution = facts.matrix.solutions[key]
        claims = [c for c in source.claims if c.outcome == "deterministic" and key in c.solutions]
        covered = [name for name, e in facts.matrix.environments.items() if any(c.covers(e) for c in claims)]
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
        "newest": audited[-1], "kernels": dict(list(kernels.items())[:_FAMILIES]),
        "more": max(0, len(kernels) - _FAMILIES),
    }  # fmt: skip


def _slowdowns(cells: list[StatusCell]) -> Iterator[Mapping[str, Any]]:
    """Run time under each solution, relative to the control."""
    for cell in cells:
        if cell.cell.time_ratio and cell.cell.is_shown_deterministic:
            yield {"environment": cell.key.environment, "device": cell.key.device, "solution": cell.key.solution,
                   "time_ratio": cell.cell.time_ratio, "address": cell_url(cell.key)}  # fmt: skip
