"""Rows in batches, in a real PyTorch: the control depends on its batch, and what was kept is what comes out again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tfdet.base.paths import Project
from tfdet.store import batches
from tfdet.store.batches import Batch

SOME = "^(linear-64x10|matmul-64x64|sum-1000|softmax-1000|batch_norm-training)-.*float(32|64)$"


def measured(python: Path, project: Project, *arguments: str) -> list[Batch]:
    done = run(python, project, *arguments)
    assert done.returncode == 0, done.stderr
    return [Batch.model_validate_json(line) for line in done.stdout.splitlines()]


def run(python: Path, project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    suite = str(project.suite("torch"))
    command = [str(python), "-m", "tfdet_probe.core.batches", suite, "--environment", "torch2.13", *arguments]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(project.runtime), "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)


def test_what_was_kept_comes_out_again(torch_python: Path, checkout: Project) -> None:
    """On a processor of the same kind; another one may take other kernels, and has its own table."""
    found = measured(torch_python, checkout, "--threads", "1", "--case", SOME)
    assert len(found) == 10
    today = batches.method(checkout, "torch")
    assert all(one.answer(today) == "depends" for one in found if one.control)
    assert all(one.answer(today) in ("depends", "invariant") for one in found)
    kept = {one.key: one for one in batches.load_all(checkout)}
    known = [(one, kept[one.key]) for one in found if one.key in kept]
    assert all(one.framework == before.framework for one, before in known)
    assert [(one.digest, one.differs, one.depends_on) for one, _ in known] == [
        (before.digest, before.differs, before.depends_on) for _, before in known
    ]
    again = measured(torch_python, checkout, "--threads", "1", "--case", "^linear-64x10-float32$")
    assert next(one for one in found if one.case == again[0].case).differs == again[0].differs


def test_a_device_that_is_not_there_is_told(torch_python: Path, checkout: Project) -> None:
    done = run(torch_python, checkout, "--device", "cuda")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("no device cuda: ")
