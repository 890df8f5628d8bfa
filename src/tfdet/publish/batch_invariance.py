"""Does a row depend on its batch?  One row an op and shape, one column a dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tfdet.base.paths import Project
from tfdet.store import batch_invariance
from tfdet.store.batch_invariance import BatchInvarianceRecord

_DTYPES = ("float32", "float64", "bfloat16", "float16")
_MARKS = {"invariant": "✓", "unsteady": "unsteady", "not run": "–", "stale": "stale"}
_THREADS = {"default": "", "one": "one thread: "}


@dataclass(frozen=True)
class BatchRow:
    op: str
    shape: str
    cells: list[str]


@dataclass(frozen=True)
class BatchTable:
    """Of one environment on one device and processor."""

    title: str
    dtypes: list[str]
    rows: list[BatchRow]
    controls: list[BatchRow]
    counts: Mapping[str, int]
    errors: list[str]


def tables(project: Project) -> list[BatchTable]:
    found = sorted(batch_invariance.load_all(project), key=lambda batch: batch.machine_key)
    methods = {
        framework: batch_invariance.method_hash(project, framework)
        for framework in {one.framework.name for one in found}
    }
    return [_table(list(some), methods) for _, some in groupby(found, key=lambda batch: batch.machine_key)]


def _table(some: list[BatchInvarianceRecord], methods: Mapping[str, str]) -> BatchTable:
    first = some[0]
    dtypes = [dtype for dtype in _DTYPES if any(one.dtype == dtype for one in some)]
    shown = [one for one in some if not one.control]
    where = f"{first.environment} ({first.framework.name} {first.framework.version}), {first.device}"
    machine = f"{first.machine.processor}, {first.machine.capability}, {first.machine.libraries}"
    return BatchTable(
        title=f"{where}: {machine}, {max(one.machine.threads for one in some)} threads",
        dtypes=dtypes,
        rows=list(_rows(shown, dtypes, methods)),
        controls=list(_rows([one for one in some if one.control], dtypes, methods)),
        counts=Counter(one.invariance(methods[one.framework.name]) for one in shown),
        errors=sorted({f"`{one.case}`: {one.error}" for one in some if one.error}),
    )


def _rows(some: list[BatchInvarianceRecord], dtypes: list[str], methods: Mapping[str, str]) -> Iterator[BatchRow]:
    ordered = sorted(some, key=lambda one: (one.op, one.shape))
    for (op, shape), mine in groupby(ordered, key=lambda one: (one.op, one.shape)):
        by_dtype: dict[str, dict[str, str]] = {}
        for one in mine:
            by_dtype.setdefault(one.dtype, {})[one.threads] = mark(one, methods[one.framework.name])
        yield BatchRow(op, shape, [_cell(by_dtype.get(dtype, {})) for dtype in dtypes])


def _cell(by_threads: Mapping[str, str]) -> str:
    """One mark where all numbers of threads give the same."""
    marks = [by_threads[threads] for threads in _THREADS if threads in by_threads]
    if len(set(marks)) <= 1:
        return "".join(marks[:1])
    return "; ".join(f"{_THREADS[threads]}{by_threads[threads]}" for threads in _THREADS if threads in by_threads)


def mark(one: BatchInvarianceRecord, method: str) -> str:
    """✓; from 4; in 2, 3, 17; where position or the other rows' values decide, too, p and o."""
    answer = one.invariance(method)
    if answer != "depends":
        return _MARKS[answer]
    first = min(one.differs, default=0)
    whole = one.differs == [size for size in one.sizes if size >= first]
    sizes = f"from {first}" if whole else f"in {', '.join(map(str, one.differs))}"
    more = [word[0] for word in ("position", "others") if word in one.depends_on]
    return f"{sizes}{' ' + ''.join(more) if more else ''}"
