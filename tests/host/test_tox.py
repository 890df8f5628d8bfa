"""tox.ini names every stock environment of the matrix, each on the CPU and on a GPU."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.records import read_records

ROOT = Path(__file__).parents[2]


def tox_environments() -> dict[str, str]:
    """{factor: environment key} of set_env."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    return dict(re.findall(r"^(tf\d+): TFDET_ENV=(\S+)$", config["testenv"]["set_env"], re.M))


def test_each_stock_environment_has_its_factor(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    assert list(tox_environments().values()) == [key for key, e in matrix.environments.items() if e.line == "stock"]


def test_each_factor_is_in_the_list() -> None:
    (braces,) = re.findall(r"tf\{([\d,]+)\}-\{cpu,gpu\}", (ROOT / "tox.ini").read_text("utf-8"))
    assert [f"tf{number}" for number in braces.split(",")] == list(tox_environments())


@pytest.mark.tensorflow
def test_the_suite_runs_in_a_tox_environment(tmp_path: Path, tf_python: Callable[[str], Path]) -> None:
    tf_python("tf1.15")  # named as skipped where there is no CPython 3.7
    sources = ["bias-add-backprop", "crop-and-resize-backprop", "tf-data-parallel-map", "python-set-order"]
    selection = [argument for source in sources for argument in ("--source", source)]
    selection += ["--solution", "none", "--solution", "TDO"]
    command = [sys.executable, "-m", "tox", "-q", "-e", "tf115-cpu", "--workdir", str(tmp_path), "--", *selection]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    records = list(read_records(tmp_path / "tf115-cpu" / "tmp" / "records.jsonl"))
    assert {r.source for r in records} == set(sources)
    assert {r.stack.tensorflow for r in records} == {"1.15.0"}
    assert "differs" in {r.observation for r in records if r.source == "crop-and-resize-backprop"}


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_a_gpu_environment_on_a_machine_without_a_gpu_fails_with_advice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tox", "-q", "-e", "tf115-gpu", "--workdir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "no NVIDIA GPU" in done.stdout + done.stderr
    assert "--device cpu" in done.stdout + done.stderr
