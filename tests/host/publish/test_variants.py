"""A verdict and its marks speak only of the variants that ran: dtypes, and compiled or not.

UDA is the solution `torch.use_deterministic_algorithms(True)`, none the control.  Marks: ✗ 20/20 differs, ✓ 0/20 does
not although the control does, ≈ was not seen to differ.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdet.matrix.devices import CPU
from tfdet.matrix.ops import Op
from tfdet.publish import variants
from tfdet.publish.op_comparison import MeasurementColumn, OpRow
from tfdet.publish.terminal_views import verdict_text
from tfdet.store.fast_records import DeviceSummary, RecordSummary
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell, Verdict
from tfdet.verdicts.variants import variants_of

CPU_SUMMARY = DeviceSummary("cpu", CPU)
OP = Op(
    key="an-op", name="an_op", variant="", samples=1, dtype="float32", dtypes=["float64", "float16"], backward=True,
    tolerance=0.0, reached=["an_op"], tags=[],
)  # fmt: skip
# Cases of one op, by how it runs: in its first dtype, in other dtypes, compiled.
FIRST, DOUBLE, HALF, COMPILED = (
    "samples-forward-eager", "samples-in-float64-eager", "samples-in-float16-eager", "largest-sample-compiled",
)  # fmt: skip


def cell(solution: str, *observations: tuple[str, str, str]) -> InferredCell:
    """Return a cell of (case, solution, observation) rows; `differs` differs in every run."""
    evidence = EvidenceIndex({"s": {"hash"}}).extend(
        RecordSummary("e", CPU_SUMMARY, "s", case, "m", under, "hash", observation,
             20 * (observation in ("equal", "differs")), 20 * (observation == "differs"), 0.5)
        for case, under, observation in observations
    )  # fmt: skip
    return evidence.cell(CellKey("e", CPU, "s", solution))


def make_op_row(none: InferredCell, uda: InferredCell, device: str = CPU) -> OpRow:
    """Return the row of an op with these cells: without a solution, and under UDA."""
    cells = {MeasurementColumn(device, "none"): none, MeasurementColumn(device, "UDA"): uda}
    verdicts = {device: variants.eager(cell).verdict for device, cell in cells.items()}
    return OpRow(OP, "torch-an-op", [], [], verdicts, cells=cells)


@pytest.mark.parametrize(
    ("case", "parts"),
    [
        (FIRST, ("eager", "its first dtype")),
        ("large-sum-in-rows-eager", ("eager", "its first dtype")),
        (HALF, ("eager", "float16")),
        (COMPILED, ("compiled",)),
        ("samples-in-float16-compiled", ("compiled",)),
        ("dense-function", ()),
        ("bare", ()),
    ],
)
def test_the_variant_follows_from_the_name_of_a_case(case: str, parts: tuple[str, ...]) -> None:
    assert variants_of(case) == parts


def test_each_variant_has_a_verdict_of_its_own() -> None:
    observations = [(FIRST, "none", "equal"), (HALF, "none", "differs"), (COMPILED, "none", "unsupported")]
    observations += [(FIRST, "UDA", "equal"), (HALF, "UDA", "equal"), (COMPILED, "UDA", "equal")]
    none, uda = cell("none", *observations), cell("UDA", *observations)
    assert none.verdict is Verdict.NONDETERMINISTIC
    assert {variant: part.verdict for variant, part in none.variants.items()} == {
        "eager": Verdict.NONDETERMINISTIC, "its first dtype": Verdict.NOT_SHOWN, "float16": Verdict.NONDETERMINISTIC,
        "compiled": Verdict.UNSUPPORTED,
    }  # fmt: skip
    # Deterministic only if the control of the same variant differed.
    assert uda.variants["its first dtype"].verdict is Verdict.NOT_SHOWN
    assert uda.variants["float16"].verdict is Verdict.DETERMINISTIC
    assert uda.variants["compiled"].verdict is Verdict.NOT_SHOWN


def test_variants_of_equal_verdict_are_not_listed() -> None:
    assert cell("none", (FIRST, "none", "equal"), ("sums-eager", "none", "equal")).variants == {}
    assert cell("none", ("sums-eager", "none", "equal"), ("sums-function", "none", "equal")).variants == {}


def test_a_row_names_the_dtypes_that_ran() -> None:
    none = cell("none", *((case, "none", "equal") for case in (FIRST, DOUBLE)), (HALF, "none", "differs"))
    op_row = make_op_row(none, InferredCell(Verdict.BLANK))
    assert (op_row.dtypes, op_row.compiled) == ("float32 float64 ≈; float16 ✗ 20/20", "")
    assert make_op_row(cell("none", (FIRST, "none", "equal")), InferredCell(Verdict.BLANK)).dtypes == "float32 ≈"
    assert make_op_row(InferredCell(Verdict.BLANK), InferredCell(Verdict.BLANK)).dtypes == ""
    texts = [text for _, text in op_row.disagreements("UDA")]
    assert texts == ["it differs on a CPU in float16; the documentation names it for none"]


def test_the_compiled_variant_has_a_column_and_changes_no_other_mark() -> None:
    observations = [
        (FIRST, "none", "equal"),
        (COMPILED, "none", "differs"),
        (FIRST, "UDA", "raises"),
        (COMPILED, "UDA", "equal"),
    ]
    op_row = make_op_row(cell("none", *observations), cell("UDA", *observations))
    assert op_row.is_notable
    assert op_row.verdicts == {
        MeasurementColumn(CPU, "none"): Verdict.NOT_SHOWN,
        MeasurementColumn(CPU, "UDA"): Verdict.RAISES,
    }
    assert op_row.compiled == "none ✗ 20/20; UDA ✓ 0/20 (≤ 14%)"
    texts = [text for kind, text in op_row.disagreements("UDA") if kind == "compiled"]
    assert texts == [
        "compiled by torch.compile it differs on a CPU; op by op it was not seen to",
        "op by op it raises on a CPU under UDA; compiled by torch.compile it was not seen to",
    ]


def test_disagreements_of_compiled_code_differ_by_kind_of_device() -> None:
    none = cell("none", (FIRST, "none", "equal"), (COMPILED, "none", "differs"))
    op_row = make_op_row(none, InferredCell(Verdict.BLANK), "nvidia-h100")
    assert list(op_row.disagreements("UDA")) == [
        ("gpu-compiled", "compiled by torch.compile it differs on nvidia-h100; op by op it was not seen to")
    ]


def test_a_difference_that_compilation_removes_is_no_disagreement() -> None:
    op_row = make_op_row(
        cell("none", (FIRST, "none", "differs"), (COMPILED, "none", "equal")), InferredCell(Verdict.BLANK)
    )
    assert not [kind for kind, _ in op_row.disagreements("UDA") if kind == "compiled"]


def test_a_difference_of_compiled_code_alone_is_marked() -> None:
    observations = [(FIRST, "none", "equal"), (COMPILED, "none", "differs")]
    assert variants.only_compiled(cell("none", *observations)) == " when compiled"
    assert variants.only_compiled(cell("none", *observations, (HALF, "none", "differs"))) == ""
    assert variants.only_compiled(cell("none", (FIRST, "none", "differs"))) == ""


@pytest.mark.parametrize("observation", ["unsupported", "crashed", "equal"])
def test_a_case_that_did_not_run_compiled_is_no_disagreement(observation: str) -> None:
    none = cell("none", (FIRST, "none", "equal"), (COMPILED, "none", observation))
    op_row = make_op_row(none, InferredCell(Verdict.BLANK))
    assert not [kind for kind, _ in op_row.disagreements("UDA") if kind == "compiled"]
    assert not op_row.is_notable


def test_the_coverage_counts_the_ops_that_take_a_dtype() -> None:
    none = cell("none", (FIRST, "none", "equal"), (DOUBLE, "none", "equal"), (HALF, "none", "unsupported"))
    other = OP.model_copy(update={"dtypes": ["float64"], "key": "other"})
    assert list(variants.coverage([(OP, none), (other, InferredCell(Verdict.BLANK)), (OP, None)])) == [
        ("in float64", 3, [("not run yet", 2), ("ran", 1)]),
        ("in float16", 2, [("unsupported", 1), ("not run yet", 1)]),
    ]


def test_a_verdict_on_a_terminal_names_its_variants() -> None:
    observations = [(case, "none", "equal") for case in (FIRST, DOUBLE)]
    assert verdict_text(cell("none", *observations)).plain.endswith("; in its first dtype, in float64")
    none = cell("none", *observations, (COMPILED, "none", "differs"))
    description = "in its first dtype: not shown to differ; in float64: not shown to differ"
    assert verdict_text(none).plain == f"nondeterministic 20/60; compiled; {description}"
    assert variants.variants_note(replace(none, variants={})) == ""
