"""Which op types have order-dependent GPU kernels in an environment, by its audit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfdet.matrix.load import load_matrix
from tfdet.matrix.models import Source
from tfdet.store.audits import load
from tfdet.verdicts.audit_findings import index_audit


def order_dependent_ops(audits: Path, env: str, sources: Mapping[str, Source] | None = None) -> dict[str, str]:
    """{op type: source key} for the audit `audits`/`env`.json; sources: those of the matrix around it.

    Op types without a GPU kernel in that build are left out, where its registrations are known.
    An op is named if a kernel of its source adds floats (or does the like) in an order that threads decide, or may, and
    nobody showed that the op does not reach it.
    A kernel that is shipped need not be the one that runs; an op that is not named can still differ, for the audit
    sees neither cuDNN, cuBLAS and XLA nor races of plain stores.  DataError: no such audit, or a damaged one.
    """
    audited = index_audit(load(audits / f"{env}.json"))
    if sources is None:
        sources = load_matrix(audits.parent).sources
    found: dict[str, str] = {}
    # An op of several sources is told as the one that comes first.
    for key, source in sorted(sources.items(), key=lambda item: item[1].sort_key):
        finding = audited.finding(source.audit) if source.audit else None
        reachable = finding and finding.reach.how in ("reached", "not established")
        if source.audit and finding and reachable and finding.kind in ("order-dependent", "unresolved"):
            for op in source.raw_ops if source.audit.ops is None else source.audit.ops:
                found.setdefault(op, key)
    known = audited.stored.registrations
    return found if known is None else {op: key for op, key in found.items() if op in known}
