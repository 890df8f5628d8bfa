"""All proofs are consistent with all evidence: no proved case was ever seen to differ.

A proof says that no order of execution on the virtual GPU changes the bytes (`schedule-independent`); its `host` lists
what on the host prevents it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tfdet.base.paths import Project
from tfdet.store.evidence import EvidenceStore
from tfdet.store.fast_records import FastRecord
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status_loading import load_status

_Key = tuple[str, str, str, str]  # environment, source, case, solution
# Their seed is drawn on the host, anew in each run: every launch is proved, and runs differ.
SEEDED_BY_THE_HOST = {"random-op-without-seed"}
# Their result is memory as it was left, and PyTorch's allocator hands out again what an earlier call wrote.
LEFT_IN_MEMORY = {"torch-empty-like", "torch-new-empty"}


def key_of(record: FastRecord) -> _Key:
    """Return what identifies a case: (environment, source, case, solution)."""
    return (record.environment, record.source, record.case, record.solution)


@pytest.fixture(scope="module")
def gpu_records(checkout: Project) -> list[FastRecord]:
    """Return records of all schedules and GPUs, of earlier forms of a case, too."""

    def read() -> Iterator[FastRecord]:
        store = EvidenceStore.open(checkout)
        for path in store.files():
            if path.parent.name != "cpu":
                yield from (row.record for row in store.record_lines(path))

    return list(read())


@pytest.mark.every_day
def test_no_case_that_ever_differed_is_proved(gpu_records: list[FastRecord]) -> None:
    proved = {key_of(record) for record in gpu_records if record.proof and record.proof.is_proved}
    differed = {key_of(record) for record in gpu_records if record.differed}
    assert len(proved) > 100
    assert len(differed) > 1000
    assert sorted(proved & differed) == []


def test_runs_differ_although_all_is_proved_only_where_no_kernel_decides(gpu_records: list[FastRecord]) -> None:
    """Any other such case would show a defect of the prover."""
    unproved = {
        record.source
        for record in gpu_records
        if record.proof and "runs_differ" in {why.reason for why in record.proof.host}
    }
    assert unproved == SEEDED_BY_THE_HOST | LEFT_IN_MEMORY


def test_the_status_names_no_false_proof(checkout: Project) -> None:
    status = load_status(checkout)
    assert [cell.key for cell in status.cells if cell.inferred.proof and cell.inferred.proof.contradicted] == []
    proved = [cell for cell in status.cells if cell.inferred.verdict is Verdict.SCHEDULE_INDEPENDENT]
    assert proved
    assert {cell.backing for cell in proved} == {"emulated"}
