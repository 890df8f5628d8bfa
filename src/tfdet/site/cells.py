"""The pages of cells: for each environment and source all cells and records, on several pages if there are many.

A cell is one environment, device, source of nondeterminism and solution. Each page has a JSON twin with
the same data.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from markupsafe import Markup

from tfdet.matrix.devices import CPU, GPU
from tfdet.matrix.models import Claim
from tfdet.matrix.plan import plan_cells
from tfdet.publish.proof_views import explain_proof, proof_note
from tfdet.publish.terminal_views import AUDIT_BLIND_SPOTS
from tfdet.site.page import Page, render_fragment, subpages
from tfdet.site.site_facts import SiteFacts, cell_data
from tfdet.site.urls import cell_url
from tfdet.store.records import Record
from tfdet.verdicts.audit_findings import AuditFinding
from tfdet.verdicts.status import StatusCell

MAX_PAGE_CHARACTERS: Final = 300 << 10  # of the records on one page, and in its JSON twin
_MAX_KERNELS = 40  # kernels of an audit on a page; the build's page counts all


def pages(facts: SiteFacts, environment: str, records: Iterable[Record]) -> Iterator[Page]:
    """Yield the pages of one environment.  records: all of its records, in any order."""
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_source[record.source].append(record)
    reasons = _skip_reasons(facts, environment)
    for source in facts.sources:
        cells = facts.cells_by_page.get((environment, source))
        if cells:
            yield from _pages(facts, cells, by_source.get(source, []), reasons.get(source, []))


def _pages(
    facts: SiteFacts, cells: list[StatusCell], records: list[Record], reasons: list[dict[str, str]]
) -> Iterator[Page]:
    environment, source = cells[0].key.environment, cells[0].key.source
    title = facts.matrix.sources[source].title
    shards = list(_shards(facts, records))
    cells_data = _data(facts, environment, source, cells, reasons)
    for subpage, (page_records, fragments) in zip(
        subpages(f"cells/{environment}/{source}", len(shards)), shards, strict=True
    ):
        is_first = subpage.data["part"] == 1
        data: dict[str, Any] = {**(cells_data if is_first else _head(environment, source, title)),
                                "records": [msgspec.Raw(record.line().strip().encode("ascii"))
                                            for record in page_records],
                                **subpage.data}  # fmt: skip
        yield Page(
            path=subpage.path,
            kind="cell" if is_first else "records",
            title=f"{title} in {environment}{subpage.suffix}",
            description=f"Is {title} deterministic in {environment}? Every record, claim and audit behind the answer.",
            data=data,
            template_data={"shown": fragments, "not_seen": AUDIT_BLIND_SPOTS} if is_first else {"shown": fragments},
        )


def content(facts: SiteFacts, environment: str, source: str, records: Iterable[Record]) -> dict[str, Any]:
    """Return what the JSON twins of an environment and source contain together."""
    cells = facts.cells_by_page.get((environment, source), [])
    reasons = _skip_reasons(facts, environment).get(source, [])
    return {
        **_data(facts, environment, source, cells, reasons),
        "records": [json.loads(record.line()) for record in records],
    }


def _head(environment: str, source: str, title: str) -> dict[str, Any]:
    return {"environment": environment, "source": source, "source_title": title}


def _data(
    facts: SiteFacts, environment: str, source: str, cells: Sequence[StatusCell], reasons: list[dict[str, str]]
) -> dict[str, Any]:
    entry = facts.matrix.sources[source]
    claims = [claim for claim in entry.claims if claim.covers(facts.matrix.environments[environment])]
    finding = facts.status.finding(environment, source)
    return {
        **_head(environment, source, entry.title),
        "api": entry.api,
        "cells": [_cell(facts, cell) for cell in sorted(cells, key=_run_first)],
        "claims": [claim_data(claim) for claim in claims],
        "audit": _audit(facts, environment, source, finding) if finding else None,
        "costs": [cost_data(cost) for cost in facts.costs_of(source) if cost.environment == environment],
        "skip_reason": reasons,
        "workaround": entry.workaround,
    }


def _run_first(cell: StatusCell) -> tuple[bool, bool]:
    """Return a sort key: cells that ran first, and among them those of GPUs first."""
    return not cell.was_run, cell.key.device == CPU


def _cell(facts: SiteFacts, cell: StatusCell) -> dict[str, Any]:
    kind = facts.matrix.devices.kind(cell.key.device)
    command = f"tfdet run {cell.key.environment} --device {kind.cli_name} --source {cell.key.source}" if kind else ""
    if command and cell.key.solution != "none":
        command += f" --solution {cell.key.solution}"
    return {**cell_data(cell), "proof_note": proof_note(cell.inferred), "backed": cell.backing_text,
            "run_again": f"{command} --out again.jsonl" if command else "", "address": cell_url(cell.key)}  # fmt: skip


def claim_data(claim: Claim) -> dict[str, Any]:
    return {"device": claim.device, "outcome": claim.outcome, "solutions": claim.solutions, "note": claim.note,
            "stock": claim.stock, "ngc": claim.ngc, "cite": claim.cite}  # fmt: skip


def cost_data(cost: Any) -> dict[str, Any]:
    return {**cost.model_dump(mode="json"), "time_ratio": round(cost.time_ratio, 3),
            "memory_ratio": round(cost.memory_ratio, 3)}  # fmt: skip


def _audit(facts: SiteFacts, environment: str, source: str, finding: AuditFinding) -> dict[str, Any]:
    audit = facts.matrix.sources[source].audit
    rows = [
        {"kernel": row.signature, "atomics": kernel_finding.atomics, "order_dependent": kernel_finding.order_dependent,
         "why": kernel_finding.reason, "archs": kernel_finding.archs, "library": row.library}
        for row in finding.rows for kernel_finding in row.kernel.findings
    ]  # fmt: skip
    return {**finding.as_json(), "unauditable_reason": audit.unauditable_reason if audit else "",
            "refuses": facts.status.audits[environment].refusal_messages(audit) if audit else [],
            "rows": rows[:_MAX_KERNELS], "more": max(0, len(rows) - _MAX_KERNELS)}  # fmt: skip


def _skip_reasons(facts: SiteFacts, environment: str) -> Mapping[str, list[dict[str, str]]]:
    """Return {source: the reasons why cells of it are not run}, each reason once."""
    by_source: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in plan_cells(facts.matrix, environment):
        # The virtual GPU, for which claims about GPUs hold too, would repeat the GPU's reasons.
        if cell.reason and (cell.device == cell.claim_device or cell.claim_device != GPU):
            by_source[cell.source][cell.device, cell.reason].append(cell.solution)
    return {
        source: [
            {"device": device, "reason": reason, "solutions": " ".join(solutions)}
            for (device, reason), solutions in by_reason.items()
        ]
        for source, by_reason in by_source.items()
    }


def _shards(facts: SiteFacts, records: list[Record]) -> Iterator[tuple[list[Record], list[Markup]]]:
    """Yield (records, their HTML) of each page; a single empty one if there are no records."""
    order = {key: number for number, key in enumerate(facts.solutions)}
    page_records: list[Record] = []
    fragments: list[Markup] = []
    available = MAX_PAGE_CHARACTERS
    for record in sorted(
        records,
        key=lambda record: (
            record.device.model,
            order.get(record.solution, 0),
            record.case,
            record.started,
            record.checksum,
        ),
    ):
        fragment = render_fragment("record", r=record, signature=facts.signer_text(record), proof=explain_proof(record))
        size = max(len(fragment), len(record.line()))
        if page_records and size > available:
            yield page_records, fragments
            page_records, fragments, available = [], [], MAX_PAGE_CHARACTERS
        page_records.append(record)
        fragments.append(fragment)
        available -= size
    yield page_records, fragments
