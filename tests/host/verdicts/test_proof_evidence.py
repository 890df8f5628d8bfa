"""All proofs against all evidence: nothing that was ever seen to differ is proved."""

from __future__ import annotations

from tfdet.base.paths import Project
from tfdet.store.evidence import EvidenceStore
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.status_loading import load_status

_Seen = tuple[str, str, str, str]  # environment, source, case, solution


def _false_proofs(proved: set[_Seen], differed: set[_Seen]) -> list[_Seen]:
    return sorted(proved & differed)


def test_nothing_that_any_record_saw_differ_is_proved(checkout: Project) -> None:
    """Under all schedules that were ever run, on cards, too, and in all earlier forms of a case."""
    proved, differed = set[_Seen](), set[_Seen]()
    store = EvidenceStore.open(checkout)
    for path in store.files():
        if path.parent.name == "cpu":
            continue
        for row in store.record_lines(path):
            r = row.record
            key = (r.environment, r.source, r.case, r.solution)
            if r.differed:
                differed.add(key)
            if r.proof and r.proof.is_proved:
                proved.add(key)
    assert len(proved) >= 17
    assert len(differed) > 1000
    assert _false_proofs(proved, differed) == []
    assert _false_proofs(proved | {min(differed)}, differed) == [min(differed)]


def test_the_status_names_no_false_proof(checkout: Project) -> None:
    found = load_status(checkout)
    assert [cell.key for cell in found.cells if cell.cell.proof and cell.cell.proof.contradicted] == []
    proved = [cell for cell in found.cells if cell.cell.verdict is Verdict.SCHEDULE_INDEPENDENT]
    assert proved
    assert {cell.backing for cell in proved} == {"emulated"}
