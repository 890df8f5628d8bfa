"""What this repository offers to other repositories' CI: action.yml and the pre-commit hook."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pre_commit.clientlib import load_manifest

ROOT = Path(__file__).parents[3]
PROGRAM = "import tensorflow as tf\ntf.math.bincount([1, 2], weights=[0.5, 0.5])\n"


def steps() -> list[dict[str, Any]]:
    """Return the steps of action.yml."""
    content: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    return content


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a repository with a program, a Python with TensorFlow, and tfdet where the action installs it."""
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "train.py").write_text(PROGRAM)
    packages = tmp_path / "packages" / "tensorflow_cpu-2.21.0.dist-info"
    packages.mkdir(parents=True)
    (packages / "METADATA").write_text("Name: tensorflow_cpu\nVersion: 2.21.0\n")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{json.dumps([str(packages.parent)])}'\n")
    python.chmod(0o755)
    (tmp_path / "tfdet" / "bin").mkdir(parents=True)
    (tmp_path / "tfdet" / "bin" / "tfdet").symlink_to(Path(sys.executable).with_name("tfdet"))
    return tmp_path


def run_check_step(workspace: Path, **inputs: str) -> tuple[int, str]:
    """Run the step's own script; return its exit code and its outputs."""
    (step,) = (step for step in steps() if step.get("id") == "check")
    output = workspace / "output"
    output.touch()
    given = {"FILES": "src/**/*.py", "PROGRAM_PYTHON": str(workspace / "python"), "DEVICE": "gpu", "SOLUTIONS": ""}
    assert given.keys() == step["env"].keys()
    environ = {**os.environ, **given, **inputs, "RUNNER_TEMP": str(workspace), "GITHUB_OUTPUT": str(output)}
    environ["TFDET_ROOT"] = str(ROOT)
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", step["run"]], cwd=workspace, env=environ, timeout=300)
    return done.returncode, output.read_text("utf-8")


def test_the_action_fails_on_an_error_and_tells_where_the_findings_are(workspace: Path) -> None:
    code, outputs = run_check_step(workspace)
    assert (code, outputs) == (1, f"sarif={workspace / 'tfdet.sarif'}\n")
    (run,) = json.loads((workspace / "tfdet.sarif").read_text("utf-8"))["runs"]
    locations = [location["physicalLocation"] for result in run["results"] for location in result.get("locations", [])]
    assert {"artifactLocation": {"uri": "src/deep/train.py"}, "region": {"startLine": 2}} in locations


@pytest.mark.parametrize(
    ("inputs", "code", "has_output"),
    [
        ({"SOLUTIONS": "TEOD ED"}, 0, True),  # keys of solutions that the program is assumed to enable
        ({"FILES": "no/such/*.py"}, 2, False),
        ({"PROGRAM_PYTHON": "no-such-python"}, 2, False),
        ({"FILES": "$(touch pasted)"}, 2, False),
    ],
)
def test_each_input_of_the_action_reaches_the_command(
    workspace: Path, inputs: dict[str, str], code: int, has_output: bool
) -> None:
    exit_code, outputs = run_check_step(workspace, **inputs)
    assert (exit_code, bool(outputs)) == (code, has_output)
    assert not (workspace / "pasted").exists()


def test_steps_are_pinned_and_paste_no_expression_into_a_shell() -> None:
    lines = [line for line in (ROOT / "action.yml").read_text("utf-8").splitlines() if "uses:" in line]
    assert lines and all(re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line) for line in lines)
    assert not any("${{" in step.get("run", "") for step in steps())
    assert all("shell" in step for step in steps() if "run" in step)


def test_the_hook_is_valid_for_pre_commit() -> None:
    (hook,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    command, *words = hook["entry"].split()
    assert Path(sys.executable).with_name(command).is_file() and words == ["check"]
