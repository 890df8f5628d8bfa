"""A third framework is one folder and one entry: its ops are recorded, compared, and explained by its own advice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parents[1] / "runtime"
ENTRY = "toyframe=toy_backend.backend:ToyBackend"


def run_trace(folder: Path, *arguments: str, entry: str = ENTRY) -> subprocess.CompletedProcess[str]:
    """Run a command of the trace with the toy framework's backend as entry."""
    paths = os.pathsep.join([str(RUNTIME), str(HERE / "toy")])
    environ = {**os.environ, "PYTHONPATH": paths, "TFDET_TRACE_BACKENDS": entry}
    command = [sys.executable, "-m", "tfdeterminism.trace", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120)


def locate_result(folder: Path, program: str) -> dict[str, Any]:
    """Locate the cause in the program; return the parsed output."""
    (folder / "train.py").write_text(program)
    ran = run_trace(folder, "locate", "--json", "--", "train.py")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def test_the_cause_in_a_toy_program_is_located(tmp_path: Path) -> None:
    output = locate_result(tmp_path, "import toyframe\n\nx = toyframe.Tensor([1, 2, 3])\nx = toyframe.scale(x)\n"
                     "x = toyframe.racy_sum(x)\ntoyframe.scale(x)\n")  # fmt: skip
    (cause,) = output["culprits"]
    assert (cause["op_type"], cause["class"], cause["line"]) == ("RacySum", "unexplained", 5)
    assert cause["file"].endswith("train.py")
    assert cause["lines"] == ["toyframe.sum(x)  # instead of racy_sum"]
    assert (output["traces"][0]["framework"], output["traces"][0]["version"]) == ("Toyframe", "1.0")


def test_a_trait_of_an_op_explains_a_difference(tmp_path: Path) -> None:
    """An attribute (trait) of the op: no rule knows the framework's ops by name."""
    output = locate_result(
        tmp_path, "import toyframe\n\nx = toyframe.empty(toyframe.Tensor([1, 2, 3]))\ntoyframe.scale(x)\n"
    )
    assert [(culprit["op_type"], culprit["class"]) for culprit in output["culprits"]] == [
        ("Empty", "uninitialized memory")
    ]


def test_without_its_entry_nothing_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import toyframe\n\ntoyframe.racy_sum(toyframe.Tensor([1, 2, 3]))\n")
    ran = run_trace(tmp_path, "run", "--out", "A", "--", "train.py", entry="")
    assert (ran.returncode, "no TensorFlow or PyTorch op" in ran.stderr) == (6, True), ran.stderr
    ran = run_trace(tmp_path, "run", "--out", "B", "--", "train.py")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("label", ["Toyframe"])
def test_a_run_without_it_names_the_framework(tmp_path: Path, label: str) -> None:
    (tmp_path / "train.py").write_text("print('no framework')\n")
    ran = run_trace(tmp_path, "run", "--out", "A", "--", "train.py")
    assert label in ran.stderr, ran.stderr
