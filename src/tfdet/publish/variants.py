"""What an op showed in each dtype, and compiled: a column each, so that no mark speaks for what was not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tfdet.matrix.ops import Op
from tfdet.publish.verdict_symbols import symbol_with_counts
from tfdet.verdicts.infer import InferredCell, Verdict
from tfdet.verdicts.variants import COMPILED, EAGER, FIRST_DTYPE_LABEL

_NO_RECORDS = InferredCell(Verdict.BLANK)
OUTCOME_VERBS = {Verdict.NONDETERMINISTIC: "differs", Verdict.RAISES: "raises"}
_INCONCLUSIVE = {Verdict.BLANK, Verdict.UNSUPPORTED, Verdict.FAILED, Verdict.STALE}  # of what it does nothing is known


def eager(cell: InferredCell) -> InferredCell:
    """What it says of the op as it is called, compiled by nobody."""
    return cell.variants.get(EAGER, _NO_RECORDS) if cell.variants else cell


def compiled(cell: InferredCell | None) -> InferredCell:
    return cell.variants.get(COMPILED, _NO_RECORDS) if cell else _NO_RECORDS


def only_compiled(cell: InferredCell) -> str:
    """` when compiled`, where op by op its verdict is another."""
    return " when compiled" if cell.verdict is compiled(cell).verdict is not eager(cell).verdict else ""


def dtypes(op: Op, cell: InferredCell | None) -> dict[str, InferredCell]:
    """By dtype, those that ran op by op."""
    if cell is None or not cell.variants:
        return {op.dtype: cell} if cell else {}
    parts = {op.dtype if way == FIRST_DTYPE_LABEL else way: part for way, part in cell.variants.items()}
    return {way: part for way, part in parts.items() if way not in (EAGER, COMPILED)}


def dtype_marks(cells: Mapping[str, InferredCell]) -> str:
    """float32 ≈, float16 ✗ 3/20; those of one mark together."""
    marks: dict[str, list[str]] = {}
    for name, cell in cells.items():
        if mark := symbol_with_counts(cell):
            marks.setdefault(mark, []).append(name)
    return "; ".join(f"{' '.join(names)} {mark}" for mark, names in marks.items())


def variants_note(cell: InferredCell) -> str:
    """; in float64 bfloat16, compiled: nondeterministic 3/20.  What of a cell speaks of more than its first dtype."""
    named = {way if way == COMPILED else f"in {way}": part for way, part in cell.variants.items() if way != EAGER}
    same = [name for name, part in named.items() if part.verdict is cell.verdict]
    others = [f"{name}: {part.verdict}" for name, part in named.items() if name not in same]
    return "".join(f"; {text}" for text in (", ".join(same), *others) if text)


def dtypes_note(op: Op, cell: InferredCell, verdict: Verdict) -> str:
    """` in float16`, where some of the dtypes showed this verdict, and the first did not."""
    found = dtypes(op, cell)
    if op.dtype not in found or found[op.dtype].verdict is verdict:
        return ""
    names = [name for name, part in found.items() if part.verdict is verdict]
    return f" in {' and '.join(names)}" if names else ""


def compiled_note(alone: Verdict, whole: Verdict) -> Iterator[str]:
    """What an op does compiled (whole) and not op by op (alone), and where it refuses no more; {where} is left open."""
    if whole is alone or {whole, alone} & _INCONCLUSIVE:
        return
    if whole in OUTCOME_VERBS:
        yield f"compiled by torch.compile it {OUTCOME_VERBS[whole]} {{where}}; op by op it was not seen to"
    elif alone is Verdict.RAISES:
        yield "op by op it raises {where}; compiled by torch.compile it was not seen to"


def coverage(rows: Sequence[tuple[Op, InferredCell | None]]) -> Iterator[tuple[str, int, list[tuple[str, int]]]]:
    """(in bfloat16, ops that take it, how many ran and why the others did not): of dtypes beside each op's first, and
    compiled; none of what nothing was run of.
    """
    known = dict.fromkeys(dtype for op, _ in rows for dtype in op.dtypes)
    parts: dict[str, list[InferredCell]] = {
        f"in {dtype}": [dtypes(op, cell).get(dtype, _NO_RECORDS) for op, cell in rows if dtype in op.dtypes]
        for dtype in known
    }
    parts["compiled"] = [compiled(cell) for op, cell in rows if op.samples]
    for name, cells in parts.items():
        if any(cell.verdict is not Verdict.BLANK for cell in cells):
            yield name, len(cells), Counter(run_outcome(cell.verdict) for cell in cells).most_common()


def run_outcome(verdict: Verdict) -> str:
    """Whether it did, and else why not."""
    if verdict is Verdict.BLANK:
        return "not run yet"
    return {Verdict.UNSUPPORTED: "unsupported", Verdict.FAILED: "failed", Verdict.STALE: "stale"}.get(verdict, "ran")
