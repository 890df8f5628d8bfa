"""`pytest --tfdet` with other options of pytest and with several processes, and the records that it stores."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_sessions import ARGUMENTS, ENVIRON, run_session

from tfdet.store.records import read_records

# TFDET_ENGINE is set in the processes that run cases.  ARGUMENTS choose a fake framework.
MODULE = """
import os
import pathlib

import numpy as np
from tfdet_probe import case

if "TFDET_ENGINE" in os.environ:
    with pathlib.Path("runs").open("a") as out:
        out.write(__file__ + "\\n")


@case("first-{name}", modes=["host"])
def test_first(make):
    return make.host(lambda: [np.arange(3)])


@case("second-{name}", modes=["host"], n=[1, 2, 3])
def test_second(make, n):
    return make.host(lambda: [np.arange(n)])
"""
DRIFTING = """
import itertools
import pathlib
import time

import numpy as np
from tfdet_probe import case

drawn = itertools.count()


@case("drifting", modes=["host"])
def test_drifting(make):
    return make.host(lambda: [np.float64(next(drawn))])


@case("steady", modes=["host"])
def test_steady(make):
    if pathlib.Path("wait").exists():
        pathlib.Path("waiting").touch()
        time.sleep(60)
    return make.host(lambda: [np.arange(2)])
"""


@pytest.fixture
def two_modules(tmp_path: Path) -> Path:
    """Write two modules of the same name, in tests/a and tests/b; return the folder above."""
    for name in ("a", "b"):
        folder = tmp_path / "tests" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "test_x.py").write_text(MODULE.replace("{name}", name), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return tmp_path


def stored_sources(folder: Path) -> dict[str, set[str]]:
    """Return {file: the sources of its records}."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): {record.source for record in read_records(path)} for path in files}


BOTH = {"tests/a/test_x.jsonl": {"first-a", "second-a"}, "tests/b/test_x.jsonl": {"first-b", "second-b"}}


@pytest.mark.parametrize("words", [[], ["-n", "2"], ["-n", "2", "--dist", "loadscope"]], ids=" ".join)
def test_each_module_runs_once_and_keeps_its_own_records(two_modules: Path, words: list[str]) -> None:
    done = run_session(two_modules, *ARGUMENTS, "--tfdet-out", "records", *words)
    assert done.returncode == 0 and "4 passed" in done.stdout, done.stdout + done.stderr
    assert stored_sources(two_modules / "records") == BOTH
    ran = (two_modules / "runs").read_text("utf-8").splitlines()
    assert sorted(ran) == [str(two_modules / "tests" / name / "test_x.py") for name in ("a", "b")]


def test_a_module_that_fails_runs_once_and_is_reported_in_each_process(two_modules: Path) -> None:
    for name in ("a", "b"):
        path = two_modules / "tests" / name / "test_x.py"
        path.write_text(path.read_text("utf-8") + "\nif 'TFDET_ENGINE' in os.environ:\n    raise LookupError('no')\n")
    done = run_session(two_modules, *ARGUMENTS, "-n", "2")
    report = done.stdout.partition("short test summary")[0]  # which says it again where CI is set
    assert "4 failed" in done.stdout and report.count("E   LookupError: no") == 4, done.stdout
    assert len((two_modules / "runs").read_text("utf-8").splitlines()) == 2


def test_records_are_written_below_the_folder_of_the_call(two_modules: Path) -> None:
    """Record files are named relative to the project; a module outside it by its full path."""
    beside = two_modules / "beside"
    beside.mkdir()
    assert run_session(beside, *ARGUMENTS, "--tfdet-out", "records", "../tests/a").returncode == 0
    assert stored_sources(beside / "records") == {"tests/a/test_x.jsonl": {"first-a", "second-a"}}
    out = ["--tfdet-out", "strange", "--rootdir", str(beside)]
    assert run_session(beside, *ARGUMENTS, *out, "../tests/a").returncode == 0
    assert [*stored_sources(beside / "strange")] == [f"{two_modules.relative_to('/')}/tests/a/test_x.jsonl"]


def test_the_import_mode_of_pytest_is_used(two_modules: Path) -> None:
    for name in ("a", "b"):
        folder = two_modules / "tests" / name
        (folder / "__init__.py").unlink()
        (folder / "layers.py").touch()
        path = folder / "test_x.py"
        path.write_text("from . import layers\n" + path.read_text("utf-8"), "utf-8")
    done = run_session(two_modules, *ARGUMENTS, "--tfdet-out", "records", "--import-mode=importlib")
    assert done.returncode == 0, done.stdout
    assert stored_sources(two_modules / "records") == BOTH


@pytest.mark.parametrize("words", [[], ["-n", "2"]], ids=" ".join)
@pytest.mark.parametrize("out", ["pytest.ini", "pytest.ini/records", "/proc/records"])
def test_a_folder_that_cannot_be_made_is_reported_at_once(two_modules: Path, out: str, words: list[str]) -> None:
    done = run_session(two_modules, *ARGUMENTS, "--tfdet-out", out, *words)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout
    assert f"ERROR: --tfdet-out {out}: " in done.stderr and "Pass a folder that you may write to" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr and not (two_modules / "runs").exists()


def test_unwritable_records_fail_their_module(two_modules: Path) -> None:
    (two_modules / "records" / "tests").mkdir(parents=True)
    (two_modules / "records" / "tests" / "a").touch()
    done = run_session(two_modules, *ARGUMENTS, "--tfdet-out", "records")
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "cannot write the records: " in done.stdout and "Traceback" not in done.stdout


def test_last_failed_runs_only_failed_cases(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(DRIFTING, "utf-8")
    command = [sys.executable, "-m", "pytest", *ARGUMENTS, "--lf"]
    for text in ("1 failed, 1 passed", "1 failed in"):
        done = subprocess.run(command, cwd=tmp_path, env=ENVIRON, capture_output=True, text=True)
        assert text in done.stdout, done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupt_leaves_whole_records_and_no_process(tmp_path: Path, number: int) -> None:
    (tmp_path / "test_mine.py").write_text(DRIFTING, "utf-8")
    (tmp_path / "temporary").mkdir()
    run_session(tmp_path, *ARGUMENTS, "--tfdet-out", "records")
    (tmp_path / "wait").touch()
    command = [sys.executable, "-m", "pytest", *ARGUMENTS, "--tfdet-out", "records"]
    environ = {**ENVIRON, "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL) as session:
        while not (tmp_path / "waiting").exists():
            assert session.poll() is None
            time.sleep(0.05)
        session.send_signal(number)
    assert stored_sources(tmp_path / "records") == {}
    end = time.monotonic() + 30
    while processes_of(tmp_path):
        assert time.monotonic() < end, "the cases still run"
        time.sleep(0.1)
    assert number == signal.SIGKILL or not [*(tmp_path / "temporary").iterdir()]


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of the processes that name this folder."""
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    return [str(command) for command in commands if f"{folder}/".encode() in command]
