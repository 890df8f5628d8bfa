"""Per environment and source: every cell, and behind each every record; long ones go on further pages."""

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
from tfdet.publish.terminal_views import NO_AUDIT_NOTE
from tfdet.site.page import Page, render_fragment, subpages
from tfdet.site.site_facts import SiteFacts, cell_data
from tfdet.site.urls import cell_url
from tfdet.store.records import Record
from tfdet.verdicts.audit_findings import AuditFinding
from tfdet.verdicts.status import StatusCell

MAX_PAGE_CHARACTERS: Final = 300 << 10  # characters of records on one page, and of each twin
_KERNELS = 40  # of an audit shown here; its build's page counts them all


def pages(facts: SiteFacts, environment: str, records: Iterable[Record]) -> Iterator[Page]:
    """All of one environment; records: all of it, in any order."""
    by_source: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_source[record.source].append(record)
    reasons = _not_run(facts, environment)
    for source in facts.sources:
        cells = facts.by_page.get((environment, source))
        if cells:
            yield from _pages(facts, cells, by_source.get(source, []), reasons.get(source, []))


def _pages(
    facts: SiteFacts, cells: list[StatusCell], records: list[Record], reasons: list[dict[str, str]]
) -> Iterator[Page]:
    environment, source = cells[0].key.environment, cells[0].key.source
    title = facts.matrix.sources[source].title
    shards = list(_shards(facts, records))
    whole = _data(facts, environment, source, cells, reasons)
    for turn, (kept, shown) in zip(subpages(f"cells/{environment}/{source}", len(shards)), shards, strict=True):
        first = turn.data["part"] == 1
        data: dict[str, Any] = {**(whole if first else _head(environment, source, title)),
                                "records": [msgspec.Raw(record.line().strip().encode("ascii")) for record in kept],
                                **turn.data}  # fmt: skip
        yield Page(
            turn.path,
            "cell" if first else "records",
            f"{title} in {environment}{turn.suffix}",
            f"Is {title} deterministic in {environment}? Every record, claim and audit behind the answer.",
            data,
            {"shown": shown, "blind": NO_AUDIT_NOTE} if first else {"shown": shown},
        )


def content(facts: SiteFacts, environment: str, source: str, records: Iterable[Record]) -> dict[str, Any]:
    """What the twins of such a page hold together."""
    cells = facts.by_page.get((environment, source), [])
    reasons = _not_run(facts, environment).get(source, [])
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
    """And what ran for a GPU before what ran on a processor, of which fewer ask."""
    return not cell.was_run, cell.key.device == CPU


def _cell(facts: SiteFacts, cell: StatusCell) -> dict[str, Any]:
    kind = facts.matrix.devices.kind(cell.key.device)
    again = f"tfdet run {cell.key.environment} --device {kind.cli_name} --source {cell.key.source}" if kind else ""
    if again and cell.key.solution != "none":
        again += f" --solution {cell.key.solution}"
    return {**cell_data(cell), "proof_note": proof_note(cell.cell), "backed": cell.backing_text,
            "run_again": f"{again} --out again.jsonl" if again else "", "address": cell_url(cell.key)}  # fmt: skip


def claim_data(claim: Claim) -> dict[str, Any]:
    return {"device": claim.device, "outcome": claim.outcome, "solutions": claim.solutions, "note": claim.note,
            "stock": claim.stock, "ngc": claim.ngc, "cite": claim.cite}  # fmt: skip


def cost_data(cost: Any) -> dict[str, Any]:
    return {**cost.model_dump(mode="json"), "time_ratio": round(cost.time_ratio, 3),
            "memory_ratio": round(cost.memory_ratio, 3)}  # fmt: skip


def _audit(facts: SiteFacts, environment: str, source: str, finding: AuditFinding) -> dict[str, Any]:
    audit = facts.matrix.sources[source].audit
    rows = [
        {"kernel": row.signature, "atomics": held.atomics, "order_dependent": held.order_dependent,
         "why": held.reason, "archs": held.archs, "library": row.library}
        for row in finding.rows for held in row.kernel.findings
    ]  # fmt: skip
    return {**finding.as_json(), "blind": audit.unauditable_reason if audit else "",
            "refuses": facts.status.audits[environment].refusal_messages(audit) if audit else [],
            "rows": rows[:_KERNELS], "more": max(0, len(rows) - _KERNELS)}  # fmt: skip


def _not_run(facts: SiteFacts, environment: str) -> Mapping[str, list[dict[str, str]]]:
    """{source: why cells of it are not run}, each reason once."""
    found: dict[str, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in plan_cells(facts.matrix, environment):
        if cell.reason and (cell.device == cell.claim_device or cell.claim_device != GPU):
            found[cell.source][cell.device, cell.reason].append(cell.solution)
    return {
        source: [
            {"device": device, "reason": reason, "solutions": " ".join(some)} for (device, reason), some in why.items()
        ]
        for source, why in found.items()
    }


def _shards(facts: SiteFacts, records: list[Record]) -> Iterator[tuple[list[Record], list[Markup]]]:
    """(records, as they are shown) of each page; there is one even where no record is."""
    order = {key: number for number, key in enumerate(facts.solutions)}
    kept: list[Record] = []
    shown: list[Markup] = []
    room = MAX_PAGE_CHARACTERS
    for record in sorted(
        records, key=lambda r: (r.device.model, order.get(r.solution, 0), r.case, r.started, r.checksum)
    ):
        text = render_fragment("record", r=record, vouched=facts.signer_text(record), proof=explain_proof(record))
        size = max(len(text), len(record.line()))
        if kept and size > room:
            yield kept, shown
            kept, shown, room = [], [], MAX_PAGE_CHARACTERS
        kept.append(record)
        shown.append(text)
        room -= size
    yield kept, shown
