"""Execute docs/how-to/test-a-model-in-ci.md: its workflow tests its repository without a GPU."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import guides
import pytest
import weekly
import yaml
from fleets import ROOT
from pytest_sessions import run_in

from tfdet.base.paths import find_project
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix

PAGE = (ROOT / "docs" / "how-to" / "test-a-model-in-ci.md").read_text("utf-8")
FAILURE = re.findall(r"^```\n(training under .*?)^```", PAGE, re.M | re.S)[0].splitlines()


def guide_block(words: str) -> str:
    """Return the page's block that begins with these words after the backticks."""
    (text,) = re.findall(rf"^```{re.escape(words)}\n(.*?)^```", PAGE, re.M | re.S)
    return str(text)


def workflow() -> dict[str, Any]:
    """Return the page's workflow, parsed."""
    content: dict[str, Any] = yaml.safe_load(guide_block("yaml file=.github/workflows/determinism.yml"))
    return content


def steps() -> list[str]:
    """Return the commands of the workflow's steps."""
    return [step["run"] for step in workflow()["jobs"]["determinism"]["steps"] if "run" in step]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Write the files that the page shows; return the folder."""
    guides.write_files(PAGE, tmp_path)
    return tmp_path


@weekly.on_day(2)
def test_a_failure_names_the_op_its_line_and_the_schedule(repository: Path) -> None:
    """Uses an existing environment and one schedule; the whole workflow runs once a week."""
    key = "torch2.14"
    environment = load_matrix(ROOT / "matrix").environment(key)
    python = VenvEngine(find_project()).interpreter(key, environment, "gpu", without_vendor_libraries=True)
    command = shlex.split(steps()[-1])
    assert command[0] == "pytest" and command[-2] == "--tfdet-schedules"
    done = run_in(python, repository, *command[1:-1], "1")
    assert done.returncode == 1, done.stdout + done.stderr
    differing = [line for line in FAILURE if "8 of 8" not in line and "schedules that" not in line]
    assert not guides.missing_lines(differing, done.stdout), done.stdout
    assert "training under none: nondeterministic, 1 of 1 runs differed" in done.stdout
    assert "schedules that gave other bytes than serial: reverse\n" in done.stdout
    assert "not evidence about NVIDIA's library: cublasSgemm_v2" in done.stdout


def shell(command: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in the folder."""
    given = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TFDET_ROOT")}
    return subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env={**given, **environ}, capture_output=True, text=True
    )


@weekly.ONLY  # it installs PyTorch
def test_the_workflow_fails_and_passes_with_the_fix(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each step is run unchanged, except for tfdet's address, which is this checkout."""
    home = tmp_path_factory.mktemp("runner")
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
    environ = {"PATH": f"{home / 'venv' / 'bin'}:{os.environ['PATH']}", "TFDET": str(ROOT)}
    assert workflow()["env"].keys() == {"TFDET"}
    *prepare, test = steps()
    for step in prepare:
        done = shell(step, repository, **environ)
        assert done.returncode == 0, done.stderr
    done = shell(test, repository, **environ)
    assert done.returncode == 1 and not guides.missing_lines(FAILURE, done.stdout), done.stdout + done.stderr
    (replay,) = re.findall(r"^replay: (.*)", done.stdout, re.M)
    done = shell(replay, repository, **environ)
    assert done.returncode == 1 and "1 of 1 runs differed" in done.stdout, done.stdout + done.stderr
    fix(repository / "model.py")
    done = shell(test + " -rA", repository, **environ)
    assert done.returncode == 0 and "not shown to differ, 0 of 8" in done.stdout, done.stdout + done.stderr


def fix(model: Path) -> None:
    """Apply the page's fix: the lines at the beginning of `train`, and the import."""
    text, docstring = model.read_text("utf-8"), '    """The weights after a few steps."""\n'
    assert text.count(docstring) == 1
    model.write_text("import os\n" + text.replace(docstring, docstring + guide_block("python fix")), "utf-8")
