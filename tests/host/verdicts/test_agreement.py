"""Signers agree on what they saw of the same case, not on a verdict alone."""

from __future__ import annotations

import pytest

from tfdet.store.fast_records import DeviceSummary, RecordSummary
from tfdet.store.records import Observation
from tfdet.verdicts.agreement import Agreement
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell, Verdict

CPU = DeviceSummary("cpu", "cpu")
X, Y, Z = (digit * 64 for digit in "abc")
# Signer, case, what was seen, of which digests ("xy"); a case "a TDO" is case a under the solution TDO.
Row = tuple[str, str, Observation, str]


def cell(rows: list[Row], solution: str = "none", machine: str = "", signed: bool = True) -> InferredCell:
    """Return a cell inferred from `rows` of (signer, case, observation, digest).

    machine: the same one for all signers; by default one each.  "now" is the current hash of every case.
    """
    evidence, digests = EvidenceIndex({"source": {"now"}}), {"x": X, "y": Y, "z": Z}
    for signer, case, outcome, named in rows:
        name, _, how = case.partition(" ")
        evidence.add(
            RecordSummary("tf2.0", CPU, "source", name, machine or f"{signer}'s", how or solution, "now", outcome, 30,
                          30 if outcome == "differs" else 0, 0.1, [digests[letter] for letter in named]),
            signer if signed else "",
        )  # fmt: skip
    return evidence.cell(CellKey("tf2.0", "cpu", "source", solution))


@pytest.mark.parametrize(
    ("rows", "verdict", "agreed"),
    [
        ([("lab", "a", "differs", "xy"), ("yard", "a", "differs", "xz")], Verdict.NONDETERMINISTIC, ("digest", "a")),
        ([("lab", "a", "differs", "x"), ("yard", "a", "differs", "z")], Verdict.NONDETERMINISTIC, ("observation", "a")),
        ([("lab", "a", "differs", "x"), ("yard", "b", "differs", "x")], Verdict.NONDETERMINISTIC, None),
        (
            [("lab", "a", "differs", "xy"), ("lab", "c", "equal", "x"), ("yard", "b", "differs", "xy"),
             ("yard", "c", "equal", "x")],
            Verdict.NONDETERMINISTIC, None,
        ),
        ([("lab", "a", "equal", "x"), ("yard", "a", "equal", "y")], Verdict.NOT_SHOWN, ("observation", "a")),
        ([("lab", "a", "equal", "x"), ("yard", "b", "equal", "x")], Verdict.NOT_SHOWN, None),
        ([("lab", "a", "raises", ""), ("yard", "a", "raises", "")], Verdict.RAISES, ("observation", "a")),
    ],
)  # fmt: skip
def test_two_signers_agree_on_the_same_case(rows: list[Row], verdict: Verdict, agreed: tuple[str, str] | None) -> None:
    inferred = cell(rows)
    expected = (Agreement(("lab", "yard"), agreed[0], (agreed[1],)),) if agreed else ()  # type: ignore[arg-type]
    assert (inferred.verdict, inferred.agreements, inferred.verified) == (verdict, expected, bool(agreed))
    assert inferred.agreeing_signers == (["lab", "yard"] if agreed else [])
    assert not cell(rows, machine="one").verified, "a machine does not agree with itself"


@pytest.mark.parametrize("signed", [True, False])
def test_machines_agree_on_the_same_case(signed: bool) -> None:
    def agreeing(*rows: Row) -> int:
        return cell(list(rows), signed=signed).agreeing_machines

    assert agreeing(("lab", "a", "differs", "x"), ("yard", "a", "differs", "z")) == 2
    assert agreeing(("lab", "a", "differs", "x"), ("yard", "b", "differs", "x")) == 1
    assert agreeing(("lab", "a", "differs", "x"), ("yard", "b", "differs", "x"), ("den", "b", "differs", "x")) == 2
    assert agreeing(("lab", "a", "equal", "x"), ("yard", "b", "equal", "x")) == 1
    assert agreeing(("lab", "a", "unsupported", ""), ("yard", "a", "unsupported", "")) == 2
    assert agreeing(("lab", "a", "differs", "x")) == 1


@pytest.mark.parametrize("common", [True, False])
def test_a_solution_is_agreed_on_where_its_control_differed_for_both(common: bool) -> None:
    rows: list[Row] = [("lab", "a TDO", "equal", "x"), ("lab", "a none", "differs", "xy")]
    other = "a" if common else "b"
    rows += [("yard", f"{other} TDO", "equal", "x"), ("yard", f"{other} none", "differs", "xy")]
    rows += [(signer, "c TDO", "equal", "x") for signer in ("lab", "yard")]
    inferred = cell(rows, "TDO")
    assert (inferred.verdict, inferred.verified) == (Verdict.DETERMINISTIC, common)
    assert [agreement.cases for agreement in inferred.agreements] == ([("a",)] if common else [])
