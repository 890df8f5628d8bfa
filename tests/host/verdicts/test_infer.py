"""Verdicts follow from the records and claim nothing more.

The control of a case is the same case without a solution (solution `none`), on the same machine.
"""

from __future__ import annotations

import tracemalloc

import pytest
from msgspec.structs import replace

from tfdet.store.fast_records import DeviceSummary, RecordSummary
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell, Verdict, bound95

CPU = DeviceSummary("cpu", "cpu")
CURRENT = {"s": {"now"}}  # hashes of the cases of source s as they are; a record with another hash is stale


def evidence_index(
    *observations: tuple[str, str, str], runs: int = 20, case_hash: str = "now", machine: str = "m"
) -> EvidenceIndex:
    """Return an index of (case, solution, observation) rows; `differs` differs in every run.

    RecordSummary: environment, device, source, case, machine, solution, case hash, observation, runs, runs that
    differed, seconds, digests.
    """
    records = [
        RecordSummary(
            "e",
            CPU,
            "s",
            case,
            machine,
            solution,
            case_hash,
            observation,
            runs,
            runs * (observation == "differs"),
            0.5,
        )
        for case, solution, observation in observations
    ]
    return EvidenceIndex(CURRENT).extend(records)


def verdict(index: EvidenceIndex, solution: str = "TDO") -> Verdict:
    """Return the verdict of the cell under a solution."""
    return index.cell(CellKey("e", "cpu", "s", solution)).verdict


def test_a_cell_without_records_is_blank() -> None:
    assert verdict(evidence_index()) is Verdict.BLANK


def test_deterministic_needs_a_control_that_differed() -> None:
    assert verdict(evidence_index(("c", "none", "differs"), ("c", "TDO", "equal"))) is Verdict.DETERMINISTIC
    assert verdict(evidence_index(("c", "none", "equal"), ("c", "TDO", "equal"))) is Verdict.NOT_SHOWN
    assert verdict(evidence_index(("c", "TDO", "equal"))) is Verdict.NOT_SHOWN


@pytest.mark.parametrize(("runs", "text"), [(1, "too few runs"), (19, "too few runs"), (20, "deterministic")])
def test_too_few_runs_have_a_verdict_of_their_own(runs: int, text: str) -> None:
    cell = evidence_index(("c", "none", "differs"), ("c", "TDO", "equal"), runs=runs).cell(
        CellKey("e", "cpu", "s", "TDO")
    )
    # bound95: the upper 95 % bound on the probability that a run differs.
    assert (str(cell.verdict), cell.runs, cell.bound95) == (text, runs, bound95(runs))


def test_runs_of_several_cases_and_machines_count_together() -> None:
    cases = [
        (case, solution, observation)
        for case in "ab"
        for solution, observation in (("none", "differs"), ("TDO", "equal"))
    ]
    assert verdict(evidence_index(*cases, runs=10)) is Verdict.DETERMINISTIC
    assert verdict(evidence_index(*cases, ("c", "none", "equal"), ("c", "TDO", "equal"), runs=9)) is Verdict.TOO_FEW


def test_the_control_itself_is_never_called_deterministic() -> None:
    assert verdict(evidence_index(("c", "none", "equal")), "none") is Verdict.NOT_SHOWN


def test_the_control_of_another_case_proves_nothing() -> None:
    index = evidence_index(("a", "none", "differs"), ("b", "none", "equal"), ("b", "TDO", "equal"))
    assert verdict(index) is Verdict.NOT_SHOWN


def test_the_control_of_another_environment_or_device_proves_nothing() -> None:
    for other in ({"environment": "other"}, {"device": DeviceSummary("nvidia", "nvidia-h200")}):
        control = replace(RecordSummary("e", CPU, "s", "c", "m", "none", "now", "differs", 20, 20, 0.5), **other)
        index = evidence_index(("c", "TDO", "equal"))
        index.add(control)
        assert verdict(index) is Verdict.NOT_SHOWN


def test_the_control_of_another_machine_proves_nothing() -> None:
    index = evidence_index(("c", "none", "differs"), machine="one")
    index.add(RecordSummary("e", CPU, "s", "c", "two", "TDO", "now", "equal", 20, 0, 0.5))
    assert verdict(index) is Verdict.NOT_SHOWN
    index.add(RecordSummary("e", CPU, "s", "c", "two", "none", "now", "differs", 20, 20, 0.5))
    assert verdict(index) is Verdict.DETERMINISTIC


def test_one_case_that_differs_makes_the_cell_nondeterministic() -> None:
    index = evidence_index(("a", "none", "differs"), ("a", "TDO", "equal"), ("b", "TDO", "differs"))
    assert verdict(index) is Verdict.NONDETERMINISTIC


def test_a_record_that_differs_outweighs_an_equal_one_of_the_same_case() -> None:
    assert verdict(evidence_index(("c", "TDO", "equal"), ("c", "TDO", "differs"))) is Verdict.NONDETERMINISTIC


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        ("raises", Verdict.RAISES),
        ("unsupported", Verdict.UNSUPPORTED),
        ("crashed", Verdict.FAILED),
        ("timed-out", Verdict.FAILED),
    ],
)
def test_the_verdict_of_runs_without_a_result(observation: str, expected: Verdict) -> None:
    assert verdict(evidence_index(("c", "none", "differs"), ("c", "TDO", observation))) is expected


def test_an_unsupported_case_does_not_stand_in_the_way_but_a_failed_one_does() -> None:
    base = [("a", "none", "differs"), ("a", "TDO", "equal")]
    assert verdict(evidence_index(*base, ("b", "TDO", "unsupported"))) is Verdict.DETERMINISTIC
    assert verdict(evidence_index(*base, ("b", "TDO", "crashed"))) is Verdict.FAILED


def test_an_attempt_that_crashed_is_outweighed_by_one_that_ended() -> None:
    index = evidence_index(("c", "none", "differs"), ("c", "TDO", "crashed"), ("c", "TDO", "equal"))
    assert verdict(index) is Verdict.DETERMINISTIC
    assert verdict(evidence_index(("c", "TDO", "crashed"), ("d", "TDO", "equal"))) is Verdict.FAILED


def test_a_cell_is_stale_only_without_current_records() -> None:
    old = evidence_index(("c", "TDO", "differs"), case_hash="before")
    assert verdict(old) is Verdict.STALE
    old.add(RecordSummary("e", CPU, "s", "c", "m", "TDO", "now", "equal", 20, 0, 0.5))
    assert verdict(old) is Verdict.NOT_SHOWN


def test_a_stale_control_proves_nothing() -> None:
    index = evidence_index(("c", "none", "differs"), case_hash="before")
    index.add(RecordSummary("e", CPU, "s", "c", "m", "TDO", "now", "equal", 20, 0, 0.5))
    assert verdict(index) is Verdict.NOT_SHOWN


def test_runs_are_counted_of_cases_whose_control_differed() -> None:
    index = evidence_index(
        ("a", "none", "differs"), ("a", "TDO", "equal"), ("b", "none", "equal"), ("b", "TDO", "equal"), runs=20
    )
    cell = index.cell(CellKey("e", "cpu", "s", "TDO"))
    assert (cell.runs, cell.controls_differed, cell.cases) == (20, 1, 2)
    assert cell.bound95 == bound95(20) == pytest.approx(1 - 0.05 ** (1 / 20))


def test_a_cell_with_a_differing_run_has_no_probability_bound() -> None:
    cell = evidence_index(("c", "none", "differs")).cell(CellKey("e", "cpu", "s", "none"))
    assert (cell.runs, cell.differed, cell.bound95) == (20, 20, None)


def test_the_time_ratio_is_relative_to_the_control_of_the_same_case() -> None:
    index = EvidenceIndex(CURRENT)
    for solution, seconds in (("none", 0.1), ("TDO", 0.25)):
        index.add(RecordSummary("e", CPU, "s", "c", "m", solution, "now", "equal", 20, 0, seconds))
    assert index.cell(CellKey("e", "cpu", "s", "TDO")).time_ratio == 2.5


def test_cells_of_the_same_machines_share_their_names() -> None:
    """Cells of a million records are in memory at once: a name for each record would fill it."""
    machines, solutions = 200, [f"S{number}" for number in range(40)]

    def infer() -> list[InferredCell]:
        index = EvidenceIndex(CURRENT)
        for solution in solutions:
            for number in range(machines):
                row = RecordSummary(
                    "e", CPU, "s", "c", f"{number:012x}", solution, "now", "equal", 20, 0, 0.5, [f"{number:064x}"]
                )
                index.add(row, "Lab")
        return [index.cell(CellKey("e", "cpu", "s", solution)) for solution in solutions]

    infer()  # grows the interpreter's table of strings
    tracemalloc.start()
    cells = infer()
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(cell.by_signer[0].machines) for cell in cells] == [machines] * len(solutions)
    assert used_bytes < 40 * machines * len(solutions)
