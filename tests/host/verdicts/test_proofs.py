"""`schedule-independent` requires that each case that ran is proved, and that none was seen to differ.

A proof has axes, what may vary without a change of the bytes: the schedule, the placement (addresses of allocations),
the device-size (number of multiprocessors). It holds for the input that ran, or for every input of its shape.
"""

from __future__ import annotations

from typing import Any

import pytest

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.fast_records import DeviceSummary, HostReason, KernelProof, Proof, ProofReason, RecordSummary
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell, Verdict
from tfdet.verdicts.status import Status

VGPU = DeviceSummary("vgpu", "vgpu-sm70")
# KernelProof: name, launches, proved launches, rules that prove, reasons against.
PROVED = KernelProof("k", 2, 2, ["commuting"], [])
OPEN = KernelProof("k", 2, 1, [], [ProofReason("rounding", [7], 1)])


def proof(*kernels: KernelProof, host: tuple[str, ...] = (), axes: str = "schedule", holds_for: Any = "input") -> Proof:
    """Return a proof of these kernels; host: reasons that the host's values give."""
    reasons = [HostReason("host", reason, 1) for reason in host]
    return Proof(axes.split(), holds_for, ["serial"], list(kernels), reasons)  # type: ignore[arg-type]


def infer(*observations: tuple[str, str, Proof | None], solution: str = "none", machine: str = "m") -> InferredCell:
    """Infer a cell from (case, observation, proof) rows; `case@machine` names the machine."""
    evidence = EvidenceIndex({"s": {"now"}})
    for name, observation, record_proof in observations:
        case, _, machine_name = name.partition("@")
        evidence.add(
            RecordSummary("e", VGPU, "s", case, machine_name or machine, solution, "now", observation,  # type: ignore[arg-type]
                          10, 10 * (observation == "differs"), 0.5, [], record_proof)
        )  # fmt: skip
    return evidence.cell(CellKey("e", "vgpu-sm70", "s", solution))


def test_one_proof_of_each_case_needs_no_control() -> None:
    cell = infer(("a", "equal", proof(PROVED)), ("b", "equal", proof(PROVED)))
    assert cell.proof
    assert (cell.verdict, cell.proof.proved, cell.bound95) == (Verdict.SCHEDULE_INDEPENDENT, 2, None)
    assert (cell.proof.axes, cell.proof.holds_for) == (("schedule",), "input")


def test_the_device_is_the_same_on_every_machine() -> None:
    assert infer(("a", "equal", None), ("a@other", "equal", proof(PROVED))).verdict is Verdict.SCHEDULE_INDEPENDENT


def test_one_proof_suffices_for_a_case() -> None:
    assert infer(("a", "equal", proof(OPEN)), ("a@n", "equal", proof(PROVED))).verdict is Verdict.SCHEDULE_INDEPENDENT


@pytest.mark.parametrize(
    ("record_proof", "reasons"),
    [
        (proof(PROVED, OPEN), {"rounding": 1}),
        (proof(PROVED, host=("event_time",)), {"event_time": 1}),
        (proof(PROVED, host=("cpu_fallback",)), {"cpu_fallback": 1}),
        (proof(host=("no_kernel",)), {"no_kernel": 1}),
    ],
)
def test_an_unproved_case_has_its_reason(record_proof: Proof, reasons: dict[str, int]) -> None:
    cell = infer(("a", "equal", proof(PROVED)), ("b", "equal", record_proof))
    assert cell.proof
    assert (cell.verdict, cell.proof.proved, cell.proof.reasons) == (Verdict.NOT_SHOWN, 1, reasons)


def test_a_case_without_a_proof_leaves_the_cell_open() -> None:
    cell = infer(("a", "equal", proof(PROVED)), ("b", "equal", None))
    assert cell.proof
    assert (cell.verdict, cell.proof.tried, cell.proof.cases) == (Verdict.NOT_SHOWN, 1, 2)


def test_a_case_that_did_not_run_needs_no_proof() -> None:
    unsupported = infer(("a", "equal", proof(PROVED)), ("b", "unsupported", None))
    assert unsupported.verdict is Verdict.SCHEDULE_INDEPENDENT
    assert infer(("a", "equal", proof(PROVED)), ("b", "crashed", None)).verdict is Verdict.FAILED


def test_a_proof_never_outweighs_a_difference() -> None:
    for name in ("a", "a@other"):
        cell = infer(("a", "equal", proof(PROVED)), (name, "differs", None))
        assert cell.proof
        assert (cell.verdict, cell.proof.contradicted) == (Verdict.NONDETERMINISTIC, ("a",))
    other = infer(("a", "equal", proof(PROVED)), ("b", "differs", None))
    assert other.proof
    assert (other.verdict, other.proof.contradicted) == (Verdict.NONDETERMINISTIC, ())


def on_devices(*runs: tuple[dict[str, Any], str, Proof], observation: str = "equal") -> InferredCell:
    """Infer a cell of one case from (device details, digest, proof) rows; sources: a digest of the device's code."""
    evidence = EvidenceIndex({"s": {"now"}})
    for details, digest, record_proof in runs:
        device = DeviceSummary("vgpu", "vgpu-sm70", {"sources": "1", **details})
        differs = observation if record_proof is runs[-1][2] else "equal"
        evidence.add(
            RecordSummary("e", device, "s", "a", "m", "none", "now", differs,  # type: ignore[arg-type]
                          10, 10 * (differs == "differs"), 0.5, [digest], record_proof)
        )  # fmt: skip
    return evidence.cell(CellKey("e", "vgpu-sm70", "s", "none"))


A100 = {"multiprocessors": 108}


@pytest.mark.parametrize(
    ("details", "digest", "axes", "comparison"),
    [
        (A100, "x", ("schedule", "device-size"), {"multiprocessors": {"same": [108], "other": []}}),
        (A100, "y", ("schedule",), {"multiprocessors": {"same": [], "other": [108]}}),
        ({**A100, "sources": "2"}, "x", ("schedule", "device-size"), {"multiprocessors": {"same": [108], "other": []}}),
        ({**A100, "sources": "2"}, "y", ("schedule",), {"multiprocessors": {"same": [], "other": []}}),
        ({"placement": 1}, "x", ("schedule", "placement"), {"placement": {"same": [1], "other": []}}),
        ({"placement": 1}, "y", ("schedule",), {"placement": {"same": [], "other": [1]}}),
        ({**A100, "placement": 1}, "x", ("schedule",), {}),  # two differences at once tell nothing of one
    ],
)
def test_a_cell_names_the_axes_that_were_compared(
    details: dict[str, Any], digest: str, axes: tuple[str, ...], comparison: dict[str, Any]
) -> None:
    cell = on_devices(({}, "x", proof(PROVED)), (details, digest, proof(PROVED)))
    assert cell.proof
    assert cell.verdict is Verdict.SCHEDULE_INDEPENDENT
    assert (cell.proof.axes, cell.proof.as_json()["compared"]) == (axes, comparison)


def test_an_axis_is_named_only_if_all_cases_were_compared() -> None:
    evidence = EvidenceIndex({"s": {"now"}})
    for case, details in (("a", {}), ("a", A100), ("b", {})):
        device = DeviceSummary("vgpu", "vgpu-sm70", {"sources": "1", **details})
        evidence.add(
            RecordSummary("e", device, "s", case, "m", "none", "now", "equal", 10, 0, 0.5, ["x"], proof(PROVED))
        )
    cell = evidence.cell(CellKey("e", "vgpu-sm70", "s", "none"))
    assert cell.proof
    assert cell.proof.axes == ("schedule",)
    assert cell.proof.as_json()["compared"] == {"multiprocessors": {"same": [], "other": []}}


def test_a_case_needs_a_proof_on_each_device_on_which_one_was_tried() -> None:
    cell = on_devices(({}, "x", proof(PROVED)), (A100, "x", proof(OPEN)))
    assert cell.proof
    assert (cell.verdict, cell.proof.proved, cell.proof.reasons) == (Verdict.NOT_SHOWN, 0, {"rounding": 1})


def test_a_difference_on_another_device_contradicts_no_proof() -> None:
    cell = on_devices(({}, "x", proof(PROVED)), (A100, "x", proof(OPEN)), observation="differs")
    assert cell.proof
    assert (cell.verdict, cell.proof.contradicted) == (Verdict.NONDETERMINISTIC, ())
    same = on_devices((A100, "x", proof(PROVED)), (A100, "x", proof(OPEN)), observation="differs")
    assert same.proof
    assert same.proof.contradicted == ("a",)


def test_a_verdict_holds_for_what_all_of_its_proofs_hold_for() -> None:
    complete = proof(PROVED, axes="schedule placement", holds_for="shape")
    cell = infer(("a", "equal", complete), ("b", "equal", proof(PROVED)))
    assert cell.proof
    assert (cell.proof.axes, cell.proof.holds_for) == (("schedule",), "input")
    single = infer(("a", "equal", complete)).proof
    assert single
    assert (single.axes, single.holds_for) == (("schedule", "placement"), "shape")
    compared = on_devices(({}, "x", complete), ({"placement": 1}, "x", complete)).proof
    assert compared
    assert compared.axes == single.axes


def _contradictions(checkout: Project, cells: dict[CellKey, InferredCell]) -> list[str]:
    """Return the contradictions of proofs that the status reports for these cells."""
    messages = Status(load_matrix(checkout.matrix), cells).contradictions()
    return [text for text in messages if "is proved on" in text]


def test_a_difference_of_a_proved_case_is_reported_as_an_error(checkout: Project) -> None:
    key = CellKey("tf2.0", "vgpu-sm70", "reduce-sum", "none")
    card = key._replace(device="nvidia-h100")
    complete = infer(("a", "equal", proof(PROVED)))
    assert _contradictions(checkout, {key: complete}) == []
    (message,) = _contradictions(checkout, {key: infer(("a", "equal", proof(PROVED)), ("a", "differs", None))})
    assert "a is proved on vgpu-sm70" in message
    other = infer(("a", "equal", proof(PROVED)), ("b", "differs", None))  # differs on both, and not in the same case
    for case, faults in (("a", 1), ("b", 0)):
        assert len(_contradictions(checkout, {key: other, card: infer((case, "differs", None))})) == faults


def test_a_solution_helps_only_if_the_control_differed() -> None:
    assert not infer(("a", "equal", proof(PROVED)), solution="TDO").is_shown_deterministic
