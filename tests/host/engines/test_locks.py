"""A lock file must have exact versions with hashes; otherwise it is rejected, and each fault is reported by line."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.errors import DataError, ExitCode
from tfdet.base.paths import Project
from tfdet.engines.locks import NVML_LOCK, check_lock, parse_pins, read_lock
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import load_environments, load_frameworks

HASH = "    --hash=sha256:" + "0" * 64
PYTEST = f"pytest==8.0 \\\n{HASH}\n"


def test_every_lock_file_of_the_checkout_is_valid(checkout: Project) -> None:
    frameworks = load_frameworks(checkout.matrix)
    environments = load_environments(checkout.matrix)
    paths = {*(checkout.docker / "locks").glob("*.txt")} - {checkout.docker / "locks" / NVML_LOCK}
    assert len(paths) > 50
    for path in sorted(paths):
        environment = environments.get(path.stem.rpartition("-")[0])
        assert environment or path.stem == "pytest"
        check_lock(path, framework=frameworks[environment.framework] if environment else None)


@pytest.mark.parametrize(("build", "extra"), [("gpu", {"nvidia-ml-py"}), ("cpu", set())])
def test_lock_files_of_gpu_builds_include_nvml(checkout: Project, build: Device, extra: set[str]) -> None:
    pins = parse_pins(checkout.lock("tf2.0", build).read_text("utf-8"))
    assert parse_pins(read_lock(checkout, "tf2.0", build)).keys() - pins.keys() == extra


def test_all_faults_of_a_lock_file_are_reported_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tf2.0-cpu.txt"
    path.write_text(
        f"{PYTEST}# made by hand\nsix>=1.0\nnumpy==1.18.5 \\\n{HASH}\nabsl-py==2.1.0 \\\n    --hash=md5:00\n"
    )
    with pytest.raises(DataError) as caught:
        check_lock(path)
    assert [line.split(": ")[0] for line in caught.value.cause.splitlines()] == [f"{path}:4", f"{path}:8"]


@pytest.mark.parametrize("text", ["six==1.0 \\\n", "six==1.0\n", f"six==1.0 \\\n{HASH} \\\nnumpy==1.0 \\\n{HASH}\n"])
def test_a_requirement_without_a_hash_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tf2.0-cpu.txt"
    path.write_text(PYTEST + text)
    with pytest.raises(DataError, match=r":\d+: "):
        check_lock(path)


@pytest.mark.parametrize("text", ["", "# nothing\n", f"six==1.0 \\\n{HASH}\n", f"pytest-cov==1.0 \\\n{HASH}\n"])
def test_a_lock_file_without_pytest_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tf2.0-cpu.txt"
    path.write_text(text)
    with pytest.raises(DataError, match="no pytest is pinned"):
        check_lock(path)


def test_a_lock_file_without_tensorflow_is_reported(checkout: Project, tmp_path: Path) -> None:
    framework = load_frameworks(checkout.matrix)["tensorflow"]
    path = tmp_path / "tf2.0-cpu.txt"
    path.write_text(PYTEST)
    check_lock(path)
    with pytest.raises(DataError, match="no TensorFlow is pinned"):
        check_lock(path, framework=framework)
    path.write_text(f"{PYTEST}tensorflow-gpu==2.0.0 \\\n{HASH}\n")
    check_lock(path, framework=framework)


def test_a_lock_file_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "tf2.0-cpu.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        check_lock(path)


def run_update_locks(root: Path, checkout: Project) -> subprocess.CompletedProcess[str]:
    """Run scripts/update-locks with a Python that has no packages."""
    script = root / "scripts" / "update-locks"
    script.parent.mkdir(exist_ok=True)
    shutil.copy(checkout.root / "scripts" / "update-locks", script)
    return subprocess.run([sys.executable, "-I", "-S", script, "tf2.0"], capture_output=True, text=True, timeout=300)


def test_update_locks_restarts_in_the_python_that_has_tfdet(checkout: Project, tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    assert run_update_locks(tmp_path, checkout).stdout == f"{tmp_path}/scripts/update-locks tf2.0\n"


def test_update_locks_without_a_venv_names_bootstrap(checkout: Project, tmp_path: Path) -> None:
    done = run_update_locks(tmp_path, checkout)
    assert done.returncode == ExitCode.USAGE
    assert "scripts/bootstrap" in done.stderr
    assert "Traceback" not in done.stderr
