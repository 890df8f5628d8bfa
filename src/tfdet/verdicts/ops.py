"""List the op types with order-dependent GPU kernels in an environment, from its audit.

An audit reads a build's binaries.  A source is a known source of nondeterminism, with patterns of its kernels' names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tfdet.matrix.load import load_matrix
from tfdet.matrix.models import Source
from tfdet.store.audits import load
from tfdet.verdicts.audit_findings import index_audit


def order_dependent_ops(audits: Path, env: str, sources: Mapping[str, Source] | None = None) -> dict[str, str]:
    """Return {op type: source key} for the audit `audits`/`env`.json.

    An op is listed if a kernel of its source is order-dependent or unresolved, and the op is not known not to reach it.
    Op types without a GPU kernel in that build are left out, if its registrations are known.  A listed op may run
    another kernel, and an op that is not listed can still differ: the audit covers neither cuDNN, cuBLAS and XLA nor
    races of plain stores.

    Args:
        audits: the folder of the audits.
        env: the environment.
        sources: the sources of the matrix; by default those of the matrix that contains `audits`.

    Raises:
        DataError: the audit is missing or damaged.
    """
    index = index_audit(load(audits / f"{env}.json"))
    if sources is None:
        sources = load_matrix(audits.parent).sources
    source_by_op: dict[str, str] = {}
    # An op of several sources is listed with the first one.
    for key, source in sorted(sources.items(), key=lambda item: item[1].sort_key):
        finding = index.finding(source.audit) if source.audit else None
        reachable = finding and finding.reach.how in ("reached", "not established")
        if source.audit and finding and reachable and finding.kind in ("order-dependent", "unresolved"):
            # audit.ops: the op types that own the kernels, if they are not all of raw_ops.
            for op in source.raw_ops if source.audit.ops is None else source.audit.ops:
                source_by_op.setdefault(op, key)
    registrations = index.stored.registrations
    return (
        source_by_op if registrations is None else {op: key for op, key in source_by_op.items() if op in registrations}
    )
