"""Does a record fit the matrix and the suite as they are now?"""

from __future__ import annotations

from collections.abc import Mapping

from tfdet.matrix.load import Matrix
from tfdet.matrix.ranges import leading_version
from tfdet.store.cases import Cases
from tfdet.store.records import Record
from tfdet_common.variables import CALLERS


def misfits(matrix: Matrix, cases: Cases, record: Record) -> list[str]:
    """Why a record does not fit the matrix and the suite as they are now.

    Of a stale record, whose case has changed since, the suite cannot tell the name any more: it backs no verdict.
    """
    unknown = [
        f"evidence of {name!r}, which the matrix does not know"
        for name, known in _names(matrix, record)
        if name not in known
    ]
    if unknown:
        return unknown
    what = f"evidence of {record.environment}"
    found = []
    apply = matrix.solutions[record.solution].apply
    theirs = {name: value for name, value in record.determinism_environment.items() if name not in CALLERS}
    if apply is None or (theirs, record.threads) != (apply.env, apply.threads or 0):
        found.append(f"{what} under {record.solution}: made with another {record.solution}")
    environment = matrix.environments[record.environment]
    if record.framework.name != environment.framework:
        found.append(f"{what}: {record.framework.name} ran, not {environment.framework}")
    wanted = leading_version(environment.framework_version)
    if wanted and not f"{record.framework.version}.".startswith(f"{wanted}."):
        found.append(f"{what}: {record.framework.name} {record.framework.version} ran, not {wanted}")
    if not cases.has(record.source, record.case_hash, record.case, record.mode):
        found.append(f"{what}: {record.source} has no case {record.case} ({record.mode})")
    return found


def _names(matrix: Matrix, record: Record) -> list[tuple[str, Mapping[str, object]]]:
    return [
        (record.environment, matrix.environments),
        (record.source, matrix.sources),
        (record.solution, matrix.solutions),
    ]
