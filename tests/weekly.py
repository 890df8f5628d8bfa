"""What a week's CI runs whole (TFDET_TESTS=all), and each day's in part: what takes minutes has its day in DAYS.

TFDET_DAY, the number of a day, chooses the part; default: today.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date
from typing import TypeVar

import pytest

T = TypeVar("T")
WORD = os.environ.get("TFDET_TESTS", "")
assert WORD in ("", "all"), f"TFDET_TESTS={WORD}"
ALL = WORD == "all"
DAY = int(os.environ.setdefault("TFDET_DAY", str(date.today().toordinal())))  # one for all processes, past midnight too
ONLY = pytest.mark.skipif(not ALL, reason="once a week: TFDET_TESTS=all")


DAYS = 6


def how_many(whole: int) -> int:
    """All of them once a week, else a fifth."""
    return whole if ALL else whole // 5


def todays(few: Sequence[T], of: Sequence[T] = (), days: int = 0, first: int = 0) -> Sequence[T]:
    """Today's share of a few, each of which has its day within `days` (default: one a day); once a week all `of`.

    first: the day of the first of them.
    """
    assert all(one in (of or few) for one in few)
    days = days or len(few)
    return (of or few) if ALL else few[(DAY - first) % days :: days]


def on_day(number: int, days: int = DAYS) -> pytest.MarkDecorator:
    """Run the test on one day of so many: what takes minutes and reaches little that other tests do not."""
    reason = f"one day in {days}: TFDET_DAY={DAY - DAY % days + number}, or TFDET_TESTS=all"
    return pytest.mark.skipif(not ALL and DAY % days != number, reason=reason)
