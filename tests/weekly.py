"""What a week's CI runs whole (TFDET_TESTS=all), and each day's in part.

TFDET_DAY, the number of a day, chooses the part; default: today.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date

import pytest

WORD = os.environ.get("TFDET_TESTS", "")
assert WORD in ("", "all"), f"TFDET_TESTS={WORD}"
ALL = WORD == "all"
DAY = int(os.environ.setdefault("TFDET_DAY", str(date.today().toordinal())))  # one for all processes, past midnight too
ONLY = pytest.mark.skipif(not ALL, reason="once a week: TFDET_TESTS=all")


def how_many(whole: int) -> int:
    """All of them once a week, else a fifth."""
    return whole if ALL else whole // 5


def todays(few: Sequence[str], of: Sequence[str] = (), days: int = 0) -> Sequence[str]:
    """Today's share of a few, each of which has its day within `days` (default: one a day); once a week all `of`."""
    assert set(few) <= set(of or few)
    days = days or len(few)
    return (of or few) if ALL else few[DAY % days :: days]


def on_day(number: int, days: int = 3) -> pytest.MarkDecorator:
    """Run the test on one day of so many: what takes minutes and reaches little that other tests do not."""
    reason = f"one day in {days}: TFDET_DAY={DAY - DAY % days + number}, or TFDET_TESTS=all"
    return pytest.mark.skipif(not ALL and DAY % days != number, reason=reason)
