"""Batch invariance: whether a row's result depends on the other rows of its batch; records, table marks and files."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.bundle import build
from tfdet.matrix.load import load_matrix
from tfdet.publish.batch_invariance import mark, tables
from tfdet.store import batch_invariance
from tfdet.store.batch_invariance import BatchInvarianceRecord
from tfdet_probe.core.batches import SIZES, measure, method, record


class Planted:
    """A case with the methods that measure() calls; its rows depend on what `run` makes them depend on."""

    def __init__(self, run: Any) -> None:
        self.run = lambda batch: run(batch).astype(np.float32)

    def rows(self, count: int, seed: int) -> Any:
        """Return rows drawn from a seed."""
        return np.random.RandomState(seed).rand(count, 5).astype(np.float32)

    def first(self, rows: Any, count: int) -> Any:
        """Return the first rows."""
        return rows[:count]

    def joined(self, rows: Any, row: Any, position: int) -> Any:
        """Return the rows with one more at a position."""
        return np.concatenate([rows[:position], row, rows[position:]])

    def part(self, out: Any, position: int) -> Any:
        """Return a row of the result."""
        return out[position].copy()

    def bytes_of(self, part: Any) -> bytes:
        """Return the bytes of a row."""
        return bytes(part.tobytes())

    def apart(self, one: Any, other: Any) -> float:
        """Return the largest difference of two rows."""
        return float(abs(one - other).max())


RUNS = itertools.count()


def drifting(batch: Any) -> Any:
    """Run a batch; each call gives another result, as a case does that differs from run to run."""
    return batch + next(RUNS)


@pytest.mark.parametrize(
    ("run", "depends_on", "first"),
    [
        (lambda batch: batch * 2, [], None),
        (lambda batch: batch + (len(batch) >= 16), ["size"], 16),
        (lambda batch: batch + (len(batch) == 17), ["size"], 17),
        (lambda batch: batch + (np.arange(len(batch))[:, None] >= 64), ["size", "position"], 128),
        (lambda batch: batch - batch.max(0), ["size", "others"], 2),
        (drifting, ["unsteady"], 2),
    ],
    ids=["invariant", "from a size on", "in one size", "by its position", "by the others", "another one each time"],
)
def test_a_planted_dependence_on_the_batch_is_found(run: Any, depends_on: list[str], first: int | None) -> None:
    result = measure(Planted(run))
    assert result["depends_on"] == depends_on
    assert min(result["differs"], default=None) == first
    assert result["sizes"] == sorted(SIZES)
    assert (result["max_absolute"] > 0) == bool(depends_on)


def test_negative_zero_is_another_row() -> None:
    result = measure(Planted(lambda batch: batch * 0 * (-1 if len(batch) > 2 else 1)), sizes=(2, 3))
    assert (result["differs"], result["max_absolute"]) == ([3], 0.0)


def test_a_failing_case_is_reported_and_others_run() -> None:
    class Lacking:
        op, shape, dtype, control = "sum", "7", "float16", False

        def on(self, device: str) -> None:
            raise NotImplementedError(f"no kernel on {device}\nand a long story")

    fields = {"framework": {"name": "torch", "version": "2.13.0"}, "device": "cpu"}
    machine = {"capability": "AVX2", "libraries": "MKL", "threads": 2}
    module = SimpleNamespace(  # as tests/suite/torch/batches.py; told(): what ran, for the record
        CASES={"a": Lacking()}, told=lambda device: {**fields, "machine": dict(machine)}, __file__=__file__
    )
    options = SimpleNamespace(device="cpu", threads=1, environment="torch2.13", sizes=None)
    parsed = BatchInvarianceRecord.model_validate(record(module, "a", options))
    assert (parsed.error, parsed.threads) == ("NotImplementedError: no kernel on cpu", "one")
    assert parsed.invariance(parsed.method) == "not run"


def test_comments_do_not_change_the_hash_of_the_method(tmp_path: Path) -> None:
    one, other, changed = tmp_path / "one.py", tmp_path / "other.py", tmp_path / "changed.py"
    one.write_text("a = 1\n", "utf-8")
    other.write_text("# why\na = 1  # so\n\n", "utf-8")
    changed.write_text("a = 2\n", "utf-8")
    assert method(str(one)) == method(str(other)) != method(str(changed))


def batch_record(**changes: Any) -> BatchInvarianceRecord:
    """Return a record of one case, with these fields changed; `method` is the hash of the measuring code."""
    machine = {"processor": "a CPU", "capability": "AVX2", "libraries": "MKL", "cores": 2, "threads": 2}
    content: dict[str, Any] = {
        "schema": 1, "environment": "torch2.13", "framework": {"name": "torch", "version": "2.13.0"}, "device": "cpu",
        "machine": machine, "threads": "default", "case": "sum-7-float32", "op": "sum", "shape": "7",
        "dtype": "float32", "control": False, "sizes": [2, 4, 8], "differs": [], "depends_on": [], "max_absolute": 0.0,
        "digest": "d", "runs": 9, "error": "", "method": "now", "started": "2026-11-23", "duration_seconds": 1,
    }  # fmt: skip
    return BatchInvarianceRecord.model_validate({**content, **changes})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "✓"),
        ({"depends_on": ["size"], "differs": [4, 8]}, "from 4"),
        ({"depends_on": ["size"], "differs": [2, 4]}, "in 2, 4"),
        ({"depends_on": ["size", "position", "others"], "differs": [2, 4, 8]}, "from 2 po"),  # p: position, o: others
        ({"depends_on": ["unsteady"], "differs": [8]}, "unsteady"),
        ({"error": "NotImplementedError: no kernel"}, "–"),
        ({"method": "earlier"}, "stale"),
    ],
)
def test_the_mark_of_each_record(changes: dict[str, Any], text: str) -> None:
    assert mark(batch_record(**changes), "now") == text


def test_a_new_record_of_a_case_replaces_the_old_one(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (path,) = batch_invariance.add(project, [batch_record(), batch_record(threads="one")])
    assert path == tmp_path / "matrix" / "batches" / "cpu" / "torch2.13.jsonl"
    batch_invariance.add(project, [batch_record(started="2026-11-24")])
    assert sorted(stored.started[8:10] for stored in batch_invariance.load_all(project)) == ["23", "24"]
    other = batch_record().model_copy(
        update={"machine": batch_record().machine.model_copy(update={"processor": "another CPU"})}
    )
    batch_invariance.add(project, [other, batch_record(device="NVIDIA H100 80GB HBM3")])
    assert len(batch_invariance.load_all(project)) == 4
    assert len(tables_of(project)) == 3, "one a processor and device"
    path.write_text(path.read_text("utf-8").replace('"runs":9', '"runs":-9'), "utf-8")
    with pytest.raises(DataError) as caught:
        batch_invariance.load_all(project)
    assert "torch2.13.jsonl:1" in caught.value.cause


def tables_of(project: Project) -> Any:
    """Return the tables of a project whose suite of batch cases is one line."""
    suite = project.suite("torch")
    suite.mkdir(parents=True, exist_ok=True)
    (suite / "batches.py").write_text("a = 1\n", "utf-8")
    return tables(project)


def test_stored_records_are_of_the_current_code_and_have_a_control(checkout: Project) -> None:
    records = batch_invariance.load_all(checkout)
    today = batch_invariance.method_hash(checkout, "torch")
    assert {stored.method for stored in records} == {today}, "measure again: scripts/batch-invariance torch2.13"
    assert {stored.invariance(today) for stored in records if stored.control} == {"depends"}
    assert {stored.threads for stored in records} == {"default", "one"}
    assert len({stored.op for stored in records}) >= 24
    answers = [stored.invariance(today) for stored in records if not stored.control]
    assert min(answers.count("invariant"), answers.count("depends")) > 20


def test_the_page_has_every_case(checkout: Project) -> None:
    text = (checkout.root / "docs" / "reference" / "batch-invariance.md").read_text("utf-8")
    # The letters begin marks: from, in, one thread, stale, unsteady. A control depends on its batch by construction.
    for table in tables(checkout):
        assert f"### {table.title}" in text
        for row in table.rows:
            assert re.search(rf"^\| {re.escape(row.op)} \| {re.escape(row.shape)} \|.* [✓fion–su]", text, re.M)
        assert all(cell.startswith("from 2") for row in table.controls for cell in row.cells)


def test_a_bundle_contains_the_batch_cases(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    order = build.BundleSpec("torch2.13", "cpu")
    carried = {entry.path for entry in build._tool_entries(checkout, matrix, order)}
    assert {"suite/batches.py", "suite/test_opinfo.py", "runtime/tfdet_probe/core/batches.py"} <= carried
