"""The quickstart on other CPUs than the one that it was written on: with oneDNN's kernels and without them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.verdicts.infer import CellKey, Verdict
from tfdet.verdicts.status_loading import load_status

# The sources whose CPU kernels oneDNN has, too: convolutions, batch norm, pooling.
SOURCES = [
    "cudnn-conv-backprop-filter", "cudnn-conv-backprop-input", "grouped-conv-backprop-filter",
    "depthwise-conv-backprop-filter", "fused-batch-norm-inference-backprop", "cudnn-max-pool-backprop",
]  # fmt: skip


def run_tf221(out: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run `tfdet run tf2.21` on the CPU."""
    command = [sys.executable, "-m", "tfdet", "run", "tf2.21", "--device", "cpu", "--out", str(out), *arguments]
    environ = {**os.environ, **changes}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=900)


def test_sources_and_solutions_of_quickstart_exist(checkout: Project) -> None:
    """Its sources and solutions are in the matrix, and one of the solutions mends each source."""
    text = (checkout.root / "scripts" / "quickstart-tensorflow").read_text()
    matrix = load_matrix(checkout.matrix)
    (sources,) = re.findall(r"sources=\(([a-z0-9 -]+)\)", text)
    short = set(re.findall(r"solutions=\(([A-Z0-9a-z ]+)\)", text)[-1].split())
    verdicts = load_status(checkout).verdicts
    for source in sources.split():
        assert source in matrix.sources
        mended = {solution for solution in short
                  if (cell := verdicts.get(CellKey("tf2.21", "cpu", source, solution)))
                  and cell.verdict is Verdict.DETERMINISTIC}  # fmt: skip
        assert mended, source


def test_the_gpu_op_of_pytorchs_quickstart_differs_and_has_a_solution(checkout: Project) -> None:
    text = (checkout.root / "scripts" / "quickstart-torch").read_text()
    command_pattern = r"run (\S+) vgpu --source (\S+) --case (\S+) --solution none --solution (\S+)"
    (environment, source, case, solution) = re.findall(command_pattern, text)[0]
    stored = (checkout.matrix / "evidence" / "vgpu-sm80" / f"{environment}.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, stored) if (record["source"], record["case"]) == (source, case)]
    assert {record["solution"]: record["observation"] for record in records} == {"none": "differs", solution: "equal"}


@pytest.mark.tensorflow
@pytest.mark.parametrize("onednn", [pytest.param("0", marks=weekly.ONLY), "1"])
def test_quickstart_succeeds_with_and_without_onednn(
    tf_python: Callable[[str], Path], tmp_path: Path, onednn: str
) -> None:
    tf_python("tf2.21")
    out = tmp_path / "records.jsonl"
    chosen = [word for source in SOURCES for word in ("--source", source)]
    done = run_tf221(
        out, *chosen, "--solution", "none", "--repeats", "1", "--processes", "1", TF_ENABLE_ONEDNN_OPTS=onednn
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert {record["source"] for record in records} == set(SOURCES)
    assert {tuple(record["determinism_environment"].items()) for record in records} == {
        (("TF_ENABLE_ONEDNN_OPTS", onednn),)
    }
    assert {record["observation"] for record in records} <= {"equal", "differs", "unsupported"}


def test_an_invalid_value_of_the_onednn_variable_is_wrong_usage(
    tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    tf_python("tf2.21")
    done = run_tf221(tmp_path / "r.jsonl", TF_ENABLE_ONEDNN_OPTS="perhaps")
    assert done.returncode == ExitCode.USAGE
    assert "TF_ENABLE_ONEDNN_OPTS=perhaps" in done.stderr
