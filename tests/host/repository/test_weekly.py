"""Tests that run in part each day run completely within their period."""

from __future__ import annotations

import pytest
import weekly
from long_tests import listed_functions


@pytest.mark.parametrize(
    ("values", "days", "first"),  # days 0: as many as there are values; first: the day of the first value
    [(["a", "b"], 0, 0), (["a", "b", "c"], 0, 2), (["a", "b", "c", "d"], 3, 0), (["a"], 6, 5)],
)
def test_each_value_is_tested_on_one_day(
    values: list[str], days: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weekly, "ALL", False)
    tried: list[str] = []
    for day in range(days or len(values)):
        monkeypatch.setattr(weekly, "DAY", 739_000 + day)  # a number of `date.toordinal()`
        assert len(weekly.select_for_today(values, days=days, first=first)) < max(2, len(values))
        tried += weekly.select_for_today(values, days=days, first=first)
        assert ("a" in tried) == (day >= (first - 739_000) % (days or len(values)))
    assert sorted(tried) == values
    monkeypatch.setattr(weekly, "ALL", True)
    assert weekly.select_for_today(values, all_values=[*values, "more"], days=days) == [*values, "more"]


def test_a_test_runs_on_one_day_in_six_and_once_a_week(monkeypatch: pytest.MonkeyPatch) -> None:
    def skipped_days() -> list[int]:
        skipped = []
        for day in range(6):
            monkeypatch.setattr(weekly, "DAY", day)
            skipped += [day] * bool(weekly.on_day(1).args[0])
        return skipped

    monkeypatch.setattr(weekly, "ALL", False)
    assert skipped_days() == [0, 2, 3, 4, 5]
    monkeypatch.setattr(weekly, "ALL", True)
    assert skipped_days() == []


def test_each_long_test_exists_and_runs_on_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    names = weekly.LONG_TESTS.read_text("utf-8").splitlines()
    assert {name.partition("[")[0] for name in names} <= {
        function for file in {name.partition("::")[0] for name in names} for function in listed_functions(file)
    }
    left_out = []
    monkeypatch.setattr(weekly, "ALL", False)
    for day in range(weekly.LONG_DAYS):
        monkeypatch.setattr(weekly, "DAY", day)
        left_out += sorted(weekly.long_tests_of_other_days())
    assert sorted(left_out) == sorted(names * (weekly.LONG_DAYS - 1))
    monkeypatch.setattr(weekly, "ALL", True)
    assert weekly.long_tests_of_other_days() == set()
