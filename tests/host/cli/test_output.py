"""What the commands print, word for word: the only place that pins prose.

After an intended change: `pytest tests/host/cli/test_output.py --snapshot-update`, and read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from rich.console import Console
from syrupy.assertion import SnapshotAssertion
from terminals import in_a_pipe, on_a_terminal
from typer.core import TyperOption

from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.publish import terminal_views
from tfdet.verdicts.status_loading import load_status
from tfdet_common.defaults import MAX_TABLE_ROWS


def _commands() -> list[list[str]]:
    """Return the words of every command, groups included."""
    commands, waiting = [], [([], typer.main.get_command(app))]
    for words, command in waiting:
        commands.append(words)
        waiting += [([*words, name], below) for name, below in getattr(command, "commands", {}).items()]
    return commands


LOOKUPS = [
    ["envs"],
    ["recipe", "tf1.14"],
    ["recipe", "torch2.4"],
    ["show", "tf1.14", "bias-add-backprop"],
    ["status", "--environment", "tf1.14"],
]  # old environments: their evidence seldom grows
ERRORS = [
    ["audit", "no-such-file.so"],
    ["check", "no-such-program.py"],
    ["evidence", "add", "no-such-file.jsonl"],
    ["envs", "--jsno"],
    ["locate"],
    ["recipe", "tf2.O"],
    ["run", "tf2.0", "--source", "bias-add"],
    ["show", "tf2.0"],
    ["status", "--environment", "tf2.O"],
    ["vgpu", "--schedule", "randon:1", "--", "python"],
]


def test_each_option_that_takes_a_value_tells_its_default() -> None:
    waiting = [typer.main.get_command(app)]
    without = []
    for command in waiting:
        waiting += getattr(command, "commands", {}).values()
        without += [
            (command.name, option.opts)
            for option in command.params
            if isinstance(option, TyperOption) and not option.is_flag and not option.required
            if option.default in (None, "", ()) and "default: " not in (option.help or "")
        ]
    assert without == []


def _name(words: list[str]) -> str:
    return " ".join(words)


@pytest.mark.parametrize("words", _commands(), ids=_name)
def test_help(checkout: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    done = in_a_pipe(checkout.root, *words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


def test_the_headline_of_a_run(
    checkout: Project, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str]
) -> None:
    """The headline covers all cells of a run, which has more cells than a screen has lines."""
    status = load_status(checkout)
    cells = [c for c in status.cells if (c.key.environment, c.key.device) == ("tf1.14", "cpu") and c.was_run]
    assert len(cells) > MAX_TABLE_ROWS
    Console(width=80).print(terminal_views.run_result(cells, whole=False))
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize("words", LOOKUPS, ids=_name)
def test_a_lookup_in_a_pipe(checkout: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    done = in_a_pipe(checkout.root, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


@pytest.mark.parametrize("words", LOOKUPS, ids=_name)
def test_a_lookup_on_a_terminal(checkout: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    assert on_a_terminal(checkout.root, 80, *words) == snapshot


@pytest.mark.parametrize("words", ERRORS, ids=_name)
def test_an_error(
    checkout: Project, snapshot: SnapshotAssertion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = in_a_pipe(checkout.root, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == snapshot
