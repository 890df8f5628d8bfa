"""Fixtures for tests in real TensorFlows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from forks import Forks


@pytest.fixture(scope="session")
def forks(tf_python: Callable[[str], Path]) -> Iterator[Callable[[str], Forks]]:
    """forks("tf2.0"): runs programs in that environment; all tests share one import of each TensorFlow."""
    made: dict[str, Forks] = {}
    with ExitStack() as stack:

        def of(environment: str) -> Forks:
            if environment not in made:
                made[environment] = stack.enter_context(Forks(tf_python(environment)))
            return made[environment]

        yield of
