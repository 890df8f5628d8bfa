"""The examples of docs/trace.md and the README's tutorial do what they show."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forks, Job

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.M | re.S)
CONSOLE = re.compile(r"^```console run\n(.*?)^```", re.M | re.S)


def environ(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3", **more}


def shown(block: str) -> list[tuple[list[str], list[str]]]:
    """(command, lines that it is shown to print) of each command."""
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    return [(shlex.split(first, comments=True), rest.splitlines())
            for first, _, rest in (part.partition("\n") for part in parts)]  # fmt: skip


def missing(lines: list[str], said: str) -> list[str]:
    """Lines that were not printed, in that order; "..." ends what is compared, folders are left out."""
    printed = iter(re.sub(r"\S*/(?=\w+\.py)", "", line) for line in said.splitlines())
    return [line for line in lines if not any(one.startswith(line.replace("...", "").rstrip()) for one in printed)]


@pytest.mark.tensorflow
def test_the_guide(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    text = (ROOT / "docs" / "trace.md").read_text("utf-8")
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content, "utf-8")
    commands = [one for block in CONSOLE.findall(text) for one in shown(block)]
    assert len(commands) == 9
    for (program, *arguments), lines in commands:
        assert program == "python"
        into = arguments.pop() if ">" in arguments else None
        (ran,) = forks("tf2.21").run([Job([one for one in arguments if one != ">"], folder=str(tmp_path))])
        if into:
            (tmp_path / into).write_text(ran.stdout, "utf-8")
        expected = 1 if into or any("differ" in line for line in lines) else 0
        assert ran.returncode == expected, ran.stderr
        assert not missing(lines, ran.stdout), ran.stdout


@pytest.mark.tensorflow
def test_the_tutorial_of_the_readme(tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    """It ends with a found race, a page, and the lines to change."""
    section = (ROOT / "README.md").read_text("utf-8").split("### Three minutes to a found race")[1].split("\n## ")[0]
    (block,) = CONSOLE.findall(section)
    ((command, lines),) = shown(block)
    tf_python("tf2.21")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    assert command[0] == ".venv/bin/tfdet"
    patient = [sys.executable, "-m", "tfdet", command[1], "--runs", "12", *command[2:]]  # a busy machine hides races
    ran = subprocess.run(patient, cwd=tmp_path, env=environ(PYTHONPATH=os.pathsep.join(sys.path), TFDET_ROOT=str(ROOT)),
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert not missing(lines, ran.stdout), ran.stdout
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "CropAndResizeGradImage" in page
    assert "tf.image.crop_and_resize" in page
