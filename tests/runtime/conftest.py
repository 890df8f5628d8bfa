"""Fixtures for tests in real frameworks."""

from __future__ import annotations

import io
import itertools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from collection import framework
from forks import Forks
from interposed_programs import ROOT, Runner, write_program
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.search.interposed_runs import InterposedRuns
from tfdeterminism.trace.search.program_copy import ProgramCopy
from tfdeterminism.trace.search.program_runner import ProgramRunner
from tfdeterminism.trace.search.progress import Progress
from tfdeterminism.trace.search.schedules import Schedules

Build = Callable[[TraceBuilder, int], object]  # (trace, number of the run) -> records


@pytest.fixture(scope="session")
def forks(tf_python: Callable[[str], Path]) -> Iterator[Callable[[str], Forks]]:
    """Return a function forks("tf2.0") that runs programs in that environment; tests share one framework import."""
    by_environment: dict[str, Forks] = {}
    with ExitStack() as stack:

        def forks_of(environment: str) -> Forks:
            if environment not in by_environment:
                by_environment[environment] = stack.enter_context(Forks(tf_python(environment), framework(environment)))
            return by_environment[environment]

        yield forks_of


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Return a function make(build, run): it writes the trace that build(TraceBuilder, run) makes; returns its path."""
    numbers = itertools.count()

    def make_trace(build: Build, run: int, end: bool = True, **header: Any) -> Path:
        builder = TraceBuilder(tmp_path / f"{next(numbers)}.tfdt", **header)
        build(builder, run)
        return builder.end() if end else builder.close_as_killed()

    return make_trace


@pytest.fixture
def compare(make: Callable[..., Path]) -> Callable[..., TraceDiff]:
    """Return a function compare(build) that compares the traces which build writes for run 0 and run 1."""

    def compared(build: Build, **header: Any) -> TraceDiff:
        return trace_diff.compare([str(make(build, run, **header)) for run in (0, 1)])

    return compared


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Runner]]:
    """Yield a function runner(text, NAME=text...) that writes main.py and modules, and returns their Runner."""

    def make(text: str, **modules: str) -> Runner:
        monkeypatch.chdir(write_program(tmp_path, main=text, **modules))
        monkeypatch.delenv("PYTHONHASHSEED", raising=False)
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "runtime"))
        copy = ProgramCopy(["main.py"], sandbox)
        quiet = Progress(1, out=io.StringIO())
        return Runner(
            InterposedRuns(ProgramRunner(copy.program, sandbox, copy.cwd), copy, sandbox, Schedules(), quiet), copy
        )

    # It has the runs' TMPDIR, in which a manager of processes makes a socket: its path has at most 107 characters.
    with tempfile.TemporaryDirectory() as sandbox:
        yield make
