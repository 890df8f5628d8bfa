"""Run the checks of this folder (`*_checks.py`) inside an environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tfdet.base.paths import Project

HERE = Path(__file__).resolve().parent
# Variables of the shell that a check sees, too.
PASSED = ("TFDET_TESTS",)  # which tests the caller wants


def environment(checkout: Project) -> dict[str, str]:
    """Return the variables that a check sees: without those of the shell that affect TensorFlow's results."""
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(checkout.runtime),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **{name: os.environ[name] for name in PASSED if name in os.environ},
    }


def run_check(checkout: Project, python: Path, script: str, *arguments: str | Path, **variables: str) -> str:
    """Run a script that must succeed; return what it prints."""
    done = subprocess.run(
        [python, HERE / script, *arguments],
        env={**environment(checkout), **variables}, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_check_for_json(checkout: Project, python: Path, script: str, *arguments: str | Path) -> list[Any]:
    """Run a script; return the JSON objects that it prints, one a line."""
    lines = run_check(checkout, python, script, *arguments).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
