"""The copy of a program's folder in which its runs write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from interposed_programs import write_program

from tfdeterminism.trace.search.program_copy import ProgramCopy, TooLargeError


def copy_of(folder: Path, sandbox: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramCopy:
    monkeypatch.chdir(folder)
    sandbox.mkdir()
    return ProgramCopy(["main.py"], str(sandbox))


def test_a_copy_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    (program / "data").mkdir()
    (program / "data" / "kept").write_text("as it was")
    (program / "link").symlink_to("data/kept")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    work = Path(copy.work)
    (work / "data" / "kept").write_text("changed")
    (work / "new").mkdir()
    (work / "new" / "file").write_text("new")
    assert sorted(map(copy.name_of, copy.changed())) == ["data/kept", "new/file"]
    copy.restore()
    assert copy.changed() == {}
    assert sorted(path.name for path in work.iterdir()) == ["data", "link", "main.py"]
    assert (work / "link").read_text() == "as it was"
    assert (program / "data" / "kept").read_text() == "as it was"


def test_a_virtual_environment_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    (program / ".venv").mkdir()
    (program / ".venv" / "pyvenv.cfg").write_text("")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    assert (Path(copy.work) / ".venv").resolve() == program / ".venv"


def test_a_home_folder_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    monkeypatch.setenv("HOME", str(program))
    (program / "scripts").mkdir()
    (program / "scripts" / "main.py").write_text("pass")
    monkeypatch.chdir(program / "scripts")
    with pytest.raises(TooLargeError):
        ProgramCopy(["../main.py"], str(tmp_path / "sandbox"))


def test_a_folder_of_odd_files_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="pass")
    os.mkfifo(program / "pipe")
    (program / "broken").symlink_to("nowhere")
    (program / "loop").symlink_to("loop")
    Path(os.fsdecode(os.path.join(os.fsencode(str(program)), b"\xff"))).write_text("odd")
    copy = copy_of(program, tmp_path / "sandbox", monkeypatch)
    assert os.fsdecode(b"\xff") in os.listdir(copy.work)
    copy.restore()
    assert copy.changed() == {}


def test_a_script_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write_program(tmp_path, main="open('written', 'w').close()")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    copy = ProgramCopy(["program/main.py"], str(tmp_path / "sandbox"))
    assert copy.root == str(program)
    assert copy.program == [os.path.join(copy.work, "main.py")]
