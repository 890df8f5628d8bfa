"""Long tests: all of them run with TFDET_TESTS=all, as in CI once a week; else those of one day out of DAYS.

TFDET_DAY, a day's number (`date.toordinal()`), says which day it is; default: today.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
WORD = os.environ.get("TFDET_TESTS", "")
assert WORD in ("", "all"), f"TFDET_TESTS={WORD}"
ALL = WORD == "all"
DAY = int(os.environ.setdefault("TFDET_DAY", str(date.today().toordinal())))  # one for all processes, past midnight too
ONLY = pytest.mark.skipif(not ALL, reason="once a week: TFDET_TESTS=all")


DAYS = 6  # of a cycle, for tests that a decorator spreads
LONG_DAYS = 3  # of a cycle, for the tests that LONG_TESTS names
LONG_TESTS = Path(__file__).with_name("long_tests.txt")


def scale_count(whole: int) -> int:
    """Return the number of attempts of a randomized test: all of them once a week, else a fifth."""
    return whole if ALL else whole // 5


def select_for_today(values: Sequence[T], all_values: Sequence[T] = (), days: int = 0, first: int = 0) -> Sequence[T]:
    """Return those of the values that are tested today: each is tested on one day of every `days` days.

    all_values: what is tested once a week instead; default: the values.  days: default: as many as there are values.
    first: the day of the first value.
    """
    assert all(value in (all_values or values) for value in values)
    days = days or len(values)
    return (all_values or values) if ALL else values[(DAY - first) % days :: days]


def on_day(number: int, days: int = DAYS) -> pytest.MarkDecorator:
    """Run a test on one day out of `days`: it takes minutes, and covers little that other tests do not."""
    reason = f"one day in {days}: TFDET_DAY={DAY - DAY % days + number}, or TFDET_TESTS=all"
    return pytest.mark.skipif(not ALL and DAY % days != number, reason=reason)


def long_tests_of_other_days() -> set[str]:
    """Return the names of the tests of long_tests.txt that do not run today."""
    names = LONG_TESTS.read_text("utf-8").splitlines()
    return set() if ALL else {name for number, name in enumerate(names) if number % LONG_DAYS != DAY % LONG_DAYS}
