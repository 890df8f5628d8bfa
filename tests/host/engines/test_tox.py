"""tox has every environment of the matrix that pip installs, on each kind of device, generated from the matrix."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.records import read_records

ROOT = Path(__file__).parents[3]


def run_tox(root: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "tox", "--root", str(root), "-c", str(root / "tox.ini"), *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def listed_environments(root: Path) -> set[str]:
    """Return the tox environments of the matrix."""
    return set(re.findall(r"^(\S+-v?[cg]pu) ", run_tox(root, "list"), re.M))


@pytest.fixture
def small_checkout(tmp_path: Path) -> Path:
    """Copy what tox reads of a checkout: its settings and the environments of the matrix."""
    for name in ("tox.ini", "toxfile.py"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("environments", "devices"):
        shutil.copytree(ROOT / "matrix" / name, tmp_path / "matrix" / name)
    return tmp_path


def test_each_environment_that_pip_builds_is_there_on_every_device(checkout: Project) -> None:
    built = [key for key, e in load_matrix(checkout.matrix).environments.items() if e.pip is not None]
    text = run_tox(ROOT, "config", "-k", "set_env")
    pairs = set(zip(re.findall(r"TFDET_ENV=(\S+)", text), re.findall(r"TFDET_DEVICE=(\S+)", text), strict=True))
    assert pairs == {(key, device) for key in built for device in ("cpu", "gpu", "vgpu")}


def test_usual_names_of_environments_exist() -> None:
    known = {"tf113": "tf1.13.1", "tf115": "tf1.15", "tf1155": "tf1.15.5", "tf20": "tf2.0", "tf210": "tf2.10"}
    for name, key in known.items():
        command = f"tfdet run {key} --engine venv --device gpu "
        assert command in run_tox(ROOT, "config", "-e", f"{name}-gpu", "-k", "commands")


@pytest.mark.parametrize(("key", "name"), [("tf2.99", "tf299"), ("tf2.3.99", "tf2399"), ("tf2.1.0", "tf2.1.0")])
def test_a_new_environment_of_the_matrix_is_in_tox(small_checkout: Path, key: str, name: str) -> None:
    before = listed_environments(small_checkout)
    (newest,) = small_checkout.joinpath("matrix").rglob("tf2.21.toml")
    shutil.copy(newest, newest.with_name(f"{key}.toml"))
    assert listed_environments(small_checkout) - before == {f"{name}-cpu", f"{name}-gpu", f"{name}-vgpu"}
    command = f"tfdet run {key} --engine venv --device cpu "
    assert command in run_tox(small_checkout, "config", "-e", f"{name}-cpu", "-k", "commands")


@weekly.on_day(1)
@pytest.mark.tensorflow
def test_the_suite_runs_in_a_tox_environment(tmp_path: Path, tf_python: Callable[[str], Path]) -> None:
    tf_python("tf1.15")  # named as skipped where there is no CPython 3.7
    sources = ["bias-add-backprop", "crop-and-resize-backprop"]
    selection = [argument for source in sources for argument in ("--source", source)]
    selection += ["--solution", "none", "--solution", "TDO", "--processes", "1"]  # TDO: TF_DETERMINISTIC_OPS=1
    command = [sys.executable, "-m", "tox", "-q", "-e", "tf115-cpu", "--workdir", str(tmp_path), "--", *selection]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    records = list(read_records(tmp_path / "tf115-cpu" / "tmp" / "records.jsonl"))
    assert {r.source for r in records} == set(sources)
    assert {r.framework.version for r in records} == {"1.15.0"}
    assert "differs" in {r.observation for r in records if r.source == "crop-and-resize-backprop"}


@weekly.on_day(5)
@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this machine has a GPU")
def test_a_gpu_environment_on_a_machine_without_a_gpu_fails_with_advice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tox", "-q", "-e", "tf115-gpu", "--workdir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "no NVIDIA GPU" in done.stdout + done.stderr
    assert "--device cpu" in done.stdout + done.stderr
