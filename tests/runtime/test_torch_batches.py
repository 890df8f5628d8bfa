"""Batch invariance in a real PyTorch: the control depends on its batch, and a second measurement agrees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tfdet.base.paths import Project
from tfdet.store import batch_invariance
from tfdet.store.batch_invariance import BatchInvarianceRecord

CASES = "^(linear-64x10|matmul-64x64|sum-1000|softmax-1000|batch_norm-training)-.*float(32|64)$"


def measured(python: Path, project: Project, *arguments: str) -> list[BatchInvarianceRecord]:
    """Return the records that tfdet_probe.core.batches prints."""
    done = run_batches(python, project, *arguments)
    assert done.returncode == 0, done.stderr
    return [BatchInvarianceRecord.model_validate_json(line) for line in done.stdout.splitlines()]


def run_batches(python: Path, project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    suite = str(project.suite("torch"))
    command = [str(python), "-m", "tfdet_probe.core.batches", suite, "--environment", "torch2.13", *arguments]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(project.runtime), "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)


def test_a_second_measurement_agrees(torch_python: Path, checkout: Project) -> None:
    """Compared on this machine only: stored records name the processor, and equal names can run different kernels."""
    records = measured(torch_python, checkout, "--threads", "1", "--case", CASES)
    assert len(records) == 10
    today = batch_invariance.method_hash(checkout, "torch")
    assert all(record.invariance(today) == "depends" for record in records if record.control)
    assert all(record.invariance(today) in ("depends", "invariant") for record in records)
    repeated = measured(torch_python, checkout, "--threads", "1", "--case", CASES)
    assert [(record.case, record.digest, record.differs, record.depends_on) for record in records] == [
        (record.case, record.digest, record.differs, record.depends_on) for record in repeated
    ]
    stored = {record.key: record for record in batch_invariance.load_all(checkout)}
    assert all(record.framework == stored[record.key].framework for record in records if record.key in stored)


def test_a_missing_device_is_an_error(torch_python: Path, checkout: Project) -> None:
    done = run_batches(torch_python, checkout, "--device", "cuda")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("no device cuda: ")
