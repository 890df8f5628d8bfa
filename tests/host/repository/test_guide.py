"""Execute the worked examples of docs/how-to/add-to-the-matrix.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.store.records import read_records

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "how-to" / "add-to-the-matrix.md"
BLOCK = re.compile(r"^```\w+ file=(?P<path>\S+)\n(?P<text>.*?)^```", re.M | re.S)


# Tests that read all of the matrix, so that an entry may break them.
MATRIX_CHECKS = [
    *(f"tests/host/matrix/test_{name}.py" for name in ("frameworks", "matrix_data", "matrix_load")),
    *(f"tests/host/publish/test_{name}.py" for name in ("recipe", "schema", "version_ranges")),
    *(f"tests/host/repository/test_{name}.py" for name in ("pages", "workflows")),
    "tests/host/audit/test_audit_findings.py",
    "tests/host/engines/test_locks.py",
    *(f"tests/runtime/test_{name}.py" for name in ("detect", "table")),
]


def section(title: str) -> str:
    """Return the guide's text from one heading to the next."""
    (text,) = re.findall(rf"^## {title}.*?(?=^## |\Z)", GUIDE.read_text("utf-8"), re.M | re.S)
    return str(text)


@weekly.on_day(0, days=2)
@pytest.mark.tensorflow
def test_the_guides_source_needs_one_toml_file_and_one_function(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    blocks = {match["path"]: match["text"] for match in BLOCK.finditer(section("Add a source"))}
    assert {Path(path).suffix for path in blocks} == {".toml", ".py"}
    (function,) = (text for path, text in blocks.items() if path.endswith(".py"))
    assert len(function.splitlines()) <= 15
    for path, text in blocks.items():
        assert not (copy.root / path).exists(), "the example must be a new source"
        (copy.root / path).write_text(text, "utf-8")
    tf_python("tf2.21")
    records = tmp_path / "records.jsonl"
    command = ["run", "tf2.21", "--device", "cpu", "--source", "cumsum-backprop", "--repeats", "3", "--out", records]
    command += ["--processes", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", *map(str, command)],
        cwd=copy.root,
        env={**os.environ, "TFDET_ROOT": str(copy.root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    stored_records = list(read_records(records))
    assert {r.case for r in stored_records} == {
        f"cumsum-{dtype}-{mode}" for dtype in ("float32", "float64") for mode in ("eager", "function", "session")
    }
    # The control, and the solutions on a CPU that apply to all ops of TensorFlow.
    assert {r.solution for r in stored_records} == {"none", "TDO", "TEOD", "ED"}
    assert {r.observation for r in stored_records} == {"equal"}
    assert "cumsum-backprop" in done.stdout


@weekly.on_day(3)
def test_the_guides_environment_needs_one_toml_file(tmp_path: Path) -> None:
    """Run in a copy of the checkout, with the network access that making lock files requires."""
    copy = tmp_path / "checkout"
    unwanted = shutil.ignore_patterns(".git", ".venv", ".tox", ".tfdet", "out", "dist", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, copy, ignore=unwanted)
    text = section("Add an environment")
    ((path, content),) = (match.group("path", "text") for match in BLOCK.finditer(text))
    (copy / path).write_text(content, "utf-8")
    first, *_ = re.findall(r"^```console\n(.*?)^```", text, re.M | re.S)
    commands = first.replace("$ ", "").splitlines()
    assert len(commands) == 2, "a file, its locks, and what is generated"
    run_in_copy(copy, "git init --quiet && git add --all")  # some checks ask git for what there is
    checks = f"pytest -q -m 'not tensorflow' -k 'not machine_without_a_gpu' {' '.join(MATRIX_CHECKS)}"
    for command in [*commands, "tfdet status --check", checks]:
        done = run_in_copy(copy, command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert "tf231-gpu" in run_in_copy(copy, "tox list").stdout
    assert "tf2.3.1" in run_in_copy(copy, "tfdet envs").stdout


def run_in_copy(copy: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command in that copy, with the copy's code."""
    environ = {**os.environ, "TFDET_ROOT": str(copy), "PYTHONPATH": f"{copy / 'src'}:{copy / 'runtime'}"}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    return subprocess.run(["bash", "-c", command], cwd=copy, env=environ, capture_output=True, text=True, timeout=900)
