"""The examples of docs/tutorial/find-a-cause.md and of the README work, and each verdict has a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import guides
import pytest
import weekly
from collection import Program, search_program
from forks import Forks, Job

ROOT = Path(__file__).resolve().parents[2]


def environ(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3", **changes}


@pytest.mark.tensorflow
def test_the_tutorials_example_prints_what_it_shows(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial" / "find-a-cause.md").read_text("utf-8")
    guides.write_files(text, tmp_path)
    commands = guides.commands(text)
    assert len(commands) == 11
    for (program, *arguments), lines in commands:
        assert program == "python"
        into = arguments.pop() if ">" in arguments else None
        (ran,) = forks("tf2.21").run(
            [Job([argument for argument in arguments if argument != ">"], folder=str(tmp_path))]
        )
        if into:
            (tmp_path / into).write_text(ran.stdout, "utf-8")
        expected = 1 if into or any("differ" in line for line in lines) else 0
        assert ran.returncode == expected, ran.stderr
        assert not guides.missing_lines(lines, ran.stdout), ran.stdout


# What stands in a verdict for what differs from program to program.
PLACEHOLDERS = {r"N": r"[\d,]+", "OP": r"\w+", "CLASS": r"[\w ]+", "FILE:LINE": r".*\.py:\d+"}
VERDICT = re.compile(r"^- \*\*(.+?)\*\*(.*?)(?=^- |^## )", re.M | re.S)


def verdicts() -> list[tuple[str, str]]:
    """Return (verdict, its description) of each verdict in the guide."""
    text = (ROOT / "docs" / "reference" / "trace.md").read_text("utf-8")
    section = text.partition("## What the verdicts mean\n")[2]
    return VERDICT.findall(section[: section.index("\n## ") + 4])


def verdict_pattern(words: str) -> str:
    expression = re.escape(words)
    for hole, stands_for in PLACEHOLDERS.items():
        expression = re.sub(rf"\b{hole}\b", lambda _, text=stands_for: text, expression)
    return expression


def test_every_verdict_of_the_tool_is_in_the_guide_and_has_a_program() -> None:
    """All sentences of the tool, and a program or an example beside each."""
    words = [verdict for verdict, _ in verdicts()]
    assert [text.split(",")[0].split(":")[0].rstrip(".") for text in words] == [
        "No difference in N runs", "OP at step N", "Only the first of N runs ended otherwise", "The runs differ",
        "Your program differs", "One run goes farther than the other", "The runs differ"]  # fmt: skip
    code = (ROOT / "runtime/tfdeterminism/trace/search/result.py").read_text("utf-8")
    for sentence in ("No difference in {} runs.", "{} at step {}: {}", "Your program differs, the probes hide it",
                     "Only the first of {} runs ended otherwise",
                     "The runs differ, and what was recorded does not show", "One run goes farther than the other",
                     "The runs differ, but no recorded op does."):  # fmt: skip
        assert sentence in code
    for verdict, text in verdicts():
        assert re.search(r"`(tests/runtime/collection|benchmarks/trace_claims_programs)/\w+\.py`", text), verdict


@pytest.mark.tensorflow
def test_the_programs_of_the_verdicts_give_these_verdicts(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    wrong = []
    for words, text in verdicts():
        for path in re.findall(r"`(tests/runtime/collection/\w+\.py)`", text):
            folder = tmp_path / Path(path).stem
            folder.mkdir()
            located_result = search_program(Program(ROOT / path), forks("tf2.21"), folder)
            if not re.match(verdict_pattern(words.rstrip(".")), located_result["verdict"]):
                wrong.append((path, words, located_result["verdict"]))
    assert wrong == []


@weekly.on_day(2)
@pytest.mark.tensorflow
def test_the_readmes_tutorial_prints_what_it_shows(tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    """It ends with a found race, a page, and the lines to change."""
    section = (ROOT / "README.md").read_text("utf-8").split("### Three minutes to a found race")[1].split("\n## ")[0]
    ((command, lines),) = guides.commands(section)
    tf_python("tf2.21")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    assert command[0] == ".venv/bin/tfdet"
    patient = [
        sys.executable,
        "-m",
        "tfdet",
        command[1],
        "--max-runs",
        "12",
        *command[2:],
    ]  # a busy machine hides races
    ran = subprocess.run(patient, cwd=tmp_path, env=environ(PYTHONPATH=os.pathsep.join(sys.path), TFDET_ROOT=str(ROOT)),
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert not guides.missing_lines(lines, ran.stdout), ran.stdout
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "CropAndResizeGradImage" in page
    assert "tf.image.crop_and_resize" in page
