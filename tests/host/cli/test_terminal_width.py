"""Output fits the width of the terminal: no line is cut, and no column shrinks to single letters."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import weekly
from terminals import on_a_terminal, plain_lines

from tfdet.base.paths import Project
from tfdet_probe.core import report


@pytest.mark.parametrize("columns", weekly.select_for_today([60, 80, 100, 250], days=2))
@pytest.mark.parametrize(
    "command",
    [["status", "--all"], ["show", "tf2.21", "crop-and-resize-backprop"], ["envs", "--all"], ["doctor", "tf2.0"]],
)
def test_lines_fit_and_words_are_whole(checkout: Project, columns: int, command: list[str]) -> None:
    lines = plain_lines(on_a_terminal(checkout.root, columns, *command))
    assert max(map(len, lines)) <= columns
    # A column of single letters is what a table makes of words that have no room.
    assert sum(len(line.split()) == 1 and len(line.strip()) <= 2 for line in lines) < len(lines) / 50
    text = "\n".join(lines)
    # f9ac3a0c4da5 is the pseudonym of a machine whose records are stored.
    for word in {"status": ["crop-and-resize-backprop", "TDO"], "show": ["f9ac3a0c4da5"], "envs": ["ngc19.06-py3"],
                 "doctor": ["CPython 3.7"]}[command[0]]:  # fmt: skip
        assert word in text


def test_a_narrow_status_says_what_a_wide_one_says(checkout: Project) -> None:
    narrow, wide = (plain_lines(on_a_terminal(checkout.root, columns, "status", "--all")) for columns in (80, 1000))
    (row,) = (line for line in wide if re.match(r"crop-and-resize-backprop +none ", line))
    assert row.split()[-1] == "✗"  # nondeterministic, in the newest environment
    below = narrow[narrow.index(next(line for line in narrow if line.startswith("crop-and-resize-backprop"))) :]
    none_row = next(line for line in below if line.startswith("  none"))
    assert "✗ TF 1.14 to " in none_row  # where it ends depends on where which device has evidence
    unwrapped = " ".join(line.strip() for line in narrow)
    assert re.search("Ranges cover measured environments only: .*tf1.13.1 tf1.14 tf1.15 ", unwrapped), (
        "wherever lines break"
    )


@pytest.mark.parametrize("command", ["status", "envs"])
def test_commands_without_arguments_fit_one_screen(checkout: Project, command: str) -> None:
    lines = plain_lines(on_a_terminal(checkout.root, 80, command))
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert any("--all" in line for line in lines)


class Screen:
    """A terminal that keeps what is written to it."""

    def __init__(self, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[str] = []
        monkeypatch.setattr(report, "_width", lambda stream: columns)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.written.append(text)

    def flush(self) -> None:
        pass


class FakeSuite:
    """What the progress report reads of a suite."""

    total = 1234


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_the_progress_line_fits_and_ends_with_the_outcome(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(columns, monkeypatch)
    progress = report.Progress(screen)
    ran = {"source": "dense-image-warp-backprop", "case": "dense-image-warp-float32-NHWC-function"}
    progress({**ran, "solution": "TDO-FE", "observation": "differs", "runs": 20, "differed": 12}, FakeSuite())
    line = screen.written[-1].replace("\r\x1b[K", "")
    assert len(line) < columns
    assert line.startswith("[1/1234]")
    assert line.endswith("differs 12/20")
    assert columns < 80 or "dense-image-warp-backprop" in line
    assert columns < 120 or "NHWC-function" in line


@pytest.mark.parametrize("columns", [60, 120])
def test_a_table_in_a_pipe_is_as_wide_as_the_variable_says(checkout: Project, columns: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "envs", "--all"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": str(columns)},
    )  # fmt: skip
    assert done.returncode == 0
    assert columns - 20 < max(map(len, done.stdout.splitlines())) <= columns


def test_a_long_run_in_a_pipe_is_a_few_lines_and_its_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Screen(80, monkeypatch)
    monkeypatch.setattr(Screen, "isatty", lambda self: False)
    progress = report.Progress(pipe)
    for number in range(FakeSuite.total):
        observation = "crashed" if number in (7, 500) else "equal"
        progress({"source": "cumsum", "case": f"case-{number}", "solution": "none", "observation": observation,
                  "runs": 2, "differed": 0}, FakeSuite())  # fmt: skip
    crashed = [line for line in pipe.written if line.endswith(": crashed\n")]
    assert [line.split()[-3] for line in crashed] == ["case-7", "case-500"]
    assert 20 <= len(pipe.written) - len(crashed) <= 23
    assert pipe.written[-1].startswith("[1234/1234]")
