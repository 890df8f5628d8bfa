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
    done = run(python, project, *arguments)
    assert done.returncode == 0, done.stderr
    return [BatchInvarianceRecord.model_validate_json(line) for line in done.stdout.splitlines()]


def run(python: Path, project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    suite = str(project.suite("torch"))
    command = [str(python), "-m", "tfdet_probe.core.batches", suite, "--environment", "torch2.13", *arguments]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(project.runtime), "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)


def test_a_second_measurement_agrees(torch_python: Path, checkout: Project) -> None:
    """Compared on this machine only: stored records name the processor, and equal names can run different kernels."""
    found = measured(torch_python, checkout, "--threads", "1", "--case", CASES)
    assert len(found) == 10
    today = batch_invariance.method_hash(checkout, "torch")
    assert all(one.invariance(today) == "depends" for one in found if one.control)
    assert all(one.invariance(today) in ("depends", "invariant") for one in found)
    again = measured(torch_python, checkout, "--threads", "1", "--case", CASES)
    assert [(one.case, one.digest, one.differs, one.depends_on) for one in found] == [
        (one.case, one.digest, one.differs, one.depends_on) for one in again
    ]
    kept = {one.key: one for one in batch_invariance.load_all(checkout)}
    assert all(one.framework == kept[one.key].framework for one in found if one.key in kept)


def test_a_missing_device_is_an_error(torch_python: Path, checkout: Project) -> None:
    done = run(torch_python, checkout, "--device", "cuda")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("no device cuda: ")
