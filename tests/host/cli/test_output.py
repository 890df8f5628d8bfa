"""What the commands print, word for word: the only place that pins prose.

After an intended change: `pytest tests/host/cli/test_output.py --snapshot-update`, and read the difference.
"""

from __future__ import annotations

import json
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
]
STORES = ("cpu/tf1.14.jsonl", "vgpu-sm70/tf1.14.jsonl", "cpu/torch2.4.jsonl")
EVIDENCE_ENDS = "2026-12-01"  # records added later change no snapshot
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


@pytest.fixture(scope="module")
def project(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return the checkout with the records of some stores up to a day, and no others."""
    root = tmp_path_factory.mktemp("project")
    for path in checkout.root.iterdir():
        if path != checkout.matrix:
            (root / path.name).symlink_to(path)
    (root / "matrix").mkdir()
    for path in checkout.matrix.iterdir():
        if path != checkout.evidence:
            (root / "matrix" / path.name).symlink_to(path)
    (root / "matrix" / "evidence").mkdir()
    (root / "matrix" / "evidence" / "earlier-hashes.json").symlink_to(checkout.evidence / "earlier-hashes.json")
    for name in STORES:
        lines = (checkout.evidence / name).read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["started"] < EVIDENCE_ENDS]
        path = root / "matrix" / "evidence" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(kept), "utf-8", newline="")
    return Project(root)


@pytest.mark.parametrize("words", _commands(), ids=_name)
def test_help(checkout: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    done = in_a_pipe(checkout.root, *words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


@pytest.mark.parametrize("source", [None, "crop-and-resize-backprop"])
def test_the_headline_of_a_run(
    project: Project, snapshot: SnapshotAssertion, capsys: pytest.CaptureFixture[str], source: str | None
) -> None:
    """The headline covers all cells of a run, which has more cells than a screen has lines; or those of one source."""
    status = load_status(project)
    cells = [c for c in status.cells if (c.key.environment, c.key.device) == ("tf1.14", "cpu") and c.was_run]
    assert len(cells) > MAX_TABLE_ROWS
    run = [cell for cell in cells if source in (None, cell.key.source)]
    Console(width=80).print(terminal_views.run_result(run, whole=False))
    assert capsys.readouterr().out == snapshot


@pytest.mark.parametrize("words", LOOKUPS, ids=_name)
def test_a_lookup_in_a_pipe(project: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    done = in_a_pipe(project.root, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


@pytest.mark.parametrize("words", LOOKUPS, ids=_name)
def test_a_lookup_on_a_terminal(project: Project, snapshot: SnapshotAssertion, words: list[str]) -> None:
    assert on_a_terminal(project.root, 80, *words) == snapshot


@pytest.mark.parametrize("words", ERRORS, ids=_name)
def test_an_error(
    checkout: Project, snapshot: SnapshotAssertion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = in_a_pipe(checkout.root, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == snapshot
