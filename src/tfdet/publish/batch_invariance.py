"""Tables of batch invariance: whether an op's bytes for one row of a batch depend on the batch, by shape and dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tfdet.base.paths import Project
from tfdet.store import batch_invariance
from tfdet.store.batch_invariance import BatchInvarianceRecord

_DTYPES = ("float32", "float64", "bfloat16", "float16")
# unsteady: a repeat of the same batch gave other bytes.  stale: another version of the measuring code made the record.
_MARKS = {"invariant": "✓", "unsteady": "unsteady", "not run": "–", "stale": "stale"}
_THREADS = {"default": "", "one": "one thread: "}


@dataclass(frozen=True)
class BatchRow:
    """The marks of one op and shape.  cells: one for each dtype."""

    op: str
    shape: str
    cells: list[str]


@dataclass(frozen=True)
class BatchTable:
    """The table of one environment, device and processor.

    controls: rows of cases that are made to depend on the batch.  counts: {invariance: number of cases}.
    """

    title: str
    dtypes: list[str]
    rows: list[BatchRow]
    controls: list[BatchRow]
    counts: Mapping[str, int]
    errors: list[str]


def tables(project: Project) -> list[BatchTable]:
    """Return the tables of all stored records."""
    records = sorted(batch_invariance.load_all(project), key=lambda record: record.machine_key)
    methods = {
        framework: batch_invariance.method_hash(project, framework)
        for framework in {record.framework.name for record in records}
    }
    return [_table(list(group), methods) for _, group in groupby(records, key=lambda record: record.machine_key)]


def _table(records: list[BatchInvarianceRecord], methods: Mapping[str, str]) -> BatchTable:
    first = records[0]
    dtypes = [dtype for dtype in _DTYPES if any(record.dtype == dtype for record in records)]
    measured = [record for record in records if not record.control]
    where = f"{first.environment} ({first.framework.name} {first.framework.version}), {first.device}"
    machine = f"{first.machine.processor}, {first.machine.capability}, {first.machine.libraries}"
    return BatchTable(
        title=f"{where}: {machine}, {max(record.machine.threads for record in records)} threads",
        dtypes=dtypes,
        rows=list(_rows(measured, dtypes, methods)),
        controls=list(_rows([record for record in records if record.control], dtypes, methods)),
        counts=Counter(record.invariance(methods[record.framework.name]) for record in measured),
        errors=sorted({f"`{record.case}`: {record.error}" for record in records if record.error}),
    )


def _rows(records: list[BatchInvarianceRecord], dtypes: list[str], methods: Mapping[str, str]) -> Iterator[BatchRow]:
    ordered = sorted(records, key=lambda record: (record.op, record.shape))
    for (op, shape), group in groupby(ordered, key=lambda record: (record.op, record.shape)):
        by_dtype: dict[str, dict[str, str]] = {}
        for record in group:
            by_dtype.setdefault(record.dtype, {})[record.threads] = mark(record, methods[record.framework.name])
        yield BatchRow(op, shape, [_cell(by_dtype.get(dtype, {})) for dtype in dtypes])


def _cell(by_threads: Mapping[str, str]) -> str:
    """Return one mark if it is the same for all numbers of threads, else a mark for each."""
    marks = [by_threads[threads] for threads in _THREADS if threads in by_threads]
    if len(set(marks)) <= 1:
        return "".join(marks[:1])
    return "; ".join(f"{_THREADS[threads]}{by_threads[threads]}" for threads in _THREADS if threads in by_threads)


def mark(record: BatchInvarianceRecord, method: str) -> str:
    """Return the mark of a record: ✓, a status, or the batch sizes in which rows differ (from 4; in 2, 3, 17).

    The letters p and o say that the row's position or the other rows' values matter, too.
    method: the hash of the current measuring code.
    """
    invariance = record.invariance(method)
    if invariance != "depends":
        return _MARKS[invariance]
    first = min(record.differs, default=0)
    is_range = record.differs == [size for size in record.sizes if size >= first]
    sizes = f"from {first}" if is_range else f"in {', '.join(map(str, record.differs))}"
    letters = [cause[0] for cause in ("position", "others") if cause in record.depends_on]
    return f"{sizes}{' ' + ''.join(letters) if letters else ''}"
