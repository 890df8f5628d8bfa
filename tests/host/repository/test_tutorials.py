"""Execute the tutorials; tests/runtime/test_trace_docs.py executes docs/tutorial/find-a-cause.md."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import guides
import pytest
import weekly

from tfdet.base.paths import Project

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorial"


def follow(name: str, root: Path, folder: Path) -> None:
    """Run a tutorial's commands in a folder, on the data of a project."""
    environ = {**os.environ, "TFDET_ROOT": str(root), "COLUMNS": "200"}
    for (program, *arguments), lines in guides.commands((TUTORIALS / name).read_text("utf-8")):
        assert program == "tfdet"
        done = subprocess.run(
            [sys.executable, "-m", "tfdet", *arguments], cwd=folder, env=environ, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert not guides.missing_lines(lines, done.stdout), (arguments, done.stdout)


@weekly.on_day(3)  # on one day in six
def test_look_up_an_op(checkout: Project, tmp_path: Path) -> None:
    follow("look-up-an-op.md", checkout.root, tmp_path)


@weekly.on_day(5)
@pytest.mark.tensorflow
def test_run_the_matrix(copy: Project, tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    tf_python("tf2.21")  # makes the environment, or skips the test if that needs a Python that is not installed
    follow("run-the-matrix.md", copy.root, tmp_path)


def test_each_tutorial_is_executed() -> None:
    known = {"find-a-cause.md", "look-up-an-op.md", "run-the-matrix.md"}
    assert {path.name for path in TUTORIALS.iterdir()} == known
    assert all(guides.commands((TUTORIALS / name).read_text("utf-8")) for name in known)
