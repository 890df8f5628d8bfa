"""Texts on the variants of an op, its dtypes and torch.compile, so that no mark covers a variant that was not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tfdet.matrix.ops import Op
from tfdet.publish.verdict_symbols import symbol_with_counts
from tfdet.verdicts.infer import InferredCell, Verdict
from tfdet.verdicts.variants import COMPILED, EAGER, FIRST_DTYPE_LABEL

_NO_RECORDS = InferredCell(Verdict.BLANK)
OUTCOME_VERBS = {Verdict.NONDETERMINISTIC: "differs", Verdict.RAISES: "raises"}
# Verdicts that do not show what the op does.
_INCONCLUSIVE = {Verdict.BLANK, Verdict.UNSUPPORTED, Verdict.FAILED, Verdict.STALE}


def eager(cell: InferredCell) -> InferredCell:
    """Return the cell of the op in eager mode."""
    return cell.variants.get(EAGER, _NO_RECORDS) if cell.variants else cell


def compiled(cell: InferredCell | None) -> InferredCell:
    """Return the cell of the op under torch.compile."""
    return cell.variants.get(COMPILED, _NO_RECORDS) if cell else _NO_RECORDS


def only_compiled(cell: InferredCell) -> str:
    """Return ` when compiled` if only the compiled op has the cell's verdict, else an empty text."""
    return " when compiled" if cell.verdict is compiled(cell).verdict is not eager(cell).verdict else ""


def dtypes(op: Op, cell: InferredCell | None) -> dict[str, InferredCell]:
    """Return {dtype: its cell} of the dtypes that ran in eager mode."""
    if cell is None or not cell.variants:
        return {op.dtype: cell} if cell else {}
    cells = {op.dtype if variant == FIRST_DTYPE_LABEL else variant: part for variant, part in cell.variants.items()}
    return {variant: part for variant, part in cells.items() if variant not in (EAGER, COMPILED)}


def dtype_marks(cells: Mapping[str, InferredCell]) -> str:
    """Return the marks of variants, grouped by mark: float32 float64 ≈; float16 ✗ 3/20."""
    marks: dict[str, list[str]] = {}
    for name, cell in cells.items():
        if mark := symbol_with_counts(cell):
            marks.setdefault(mark, []).append(name)
    return "; ".join(f"{' '.join(names)} {mark}" for mark, names in marks.items())


def variants_note(cell: InferredCell) -> str:
    """Return the note on the variants of a cell: `; in its first dtype, in float64; compiled: raises`."""
    parts = {
        variant if variant == COMPILED else f"in {variant}": part
        for variant, part in cell.variants.items()
        if variant != EAGER
    }
    same = [name for name, part in parts.items() if part.verdict is cell.verdict]
    others = [f"{name}: {part.verdict}" for name, part in parts.items() if name not in same]
    return "".join(f"; {text}" for text in (", ".join(same), *others) if text)


def dtypes_note(op: Op, cell: InferredCell, verdict: Verdict) -> str:
    """Return the dtypes with a verdict that the first dtype does not have: ` in float16`; empty if there are none."""
    cells = dtypes(op, cell)
    if op.dtype not in cells or cells[op.dtype].verdict is verdict:
        return ""
    names = [name for name, part in cells.items() if part.verdict is verdict]
    return f" in {' and '.join(names)}" if names else ""


def compiled_note(eager_verdict: Verdict, compiled_verdict: Verdict) -> Iterator[str]:
    """Yield what an op does only under torch.compile, or only in eager mode, as format strings with {where}."""
    if compiled_verdict is eager_verdict or {compiled_verdict, eager_verdict} & _INCONCLUSIVE:
        return
    if compiled_verdict in OUTCOME_VERBS:
        yield f"compiled by torch.compile it {OUTCOME_VERBS[compiled_verdict]} {{where}}; op by op it was not seen to"
    elif eager_verdict is Verdict.RAISES:
        yield "op by op it raises {where}; compiled by torch.compile it was not seen to"


def coverage(rows: Sequence[tuple[Op, InferredCell | None]]) -> Iterator[tuple[str, int, list[tuple[str, int]]]]:
    """Yield (e.g. `in bfloat16` or `compiled`, number of ops that support it, (outcome, number of ops)).

    Dtypes are those besides each op's first.  Variants that were never run are left out.
    """
    dtypes_of_ops = dict.fromkeys(dtype for op, _ in rows for dtype in op.dtypes)
    cells_by_variant: dict[str, list[InferredCell]] = {
        f"in {dtype}": [dtypes(op, cell).get(dtype, _NO_RECORDS) for op, cell in rows if dtype in op.dtypes]
        for dtype in dtypes_of_ops
    }
    cells_by_variant["compiled"] = [compiled(cell) for op, cell in rows if op.samples]
    for name, cells in cells_by_variant.items():
        if any(cell.verdict is not Verdict.BLANK for cell in cells):
            yield name, len(cells), Counter(run_outcome(cell.verdict) for cell in cells).most_common()


def run_outcome(verdict: Verdict) -> str:
    """Return `ran`, or why an op with this verdict did not run."""
    if verdict is Verdict.BLANK:
        return "not run yet"
    return {Verdict.UNSUPPORTED: "unsupported", Verdict.FAILED: "failed", Verdict.STALE: "stale"}.get(verdict, "ran")
