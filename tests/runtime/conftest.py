"""Fixtures for tests in real frameworks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from collection import framework
from forks import Forks
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff

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
