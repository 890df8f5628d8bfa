"""What runs in part each day runs whole within its days."""

from __future__ import annotations

import pytest
import weekly


@pytest.mark.parametrize(("few", "days"), [(["a", "b"], 0), (["a", "b", "c"], 0), (["a", "b", "c", "d"], 3)])
def test_each_has_its_day(few: list[str], days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weekly, "ALL", False)
    tried: list[str] = []
    for day in range(days or len(few)):
        monkeypatch.setattr(weekly, "DAY", 739_000 + day)
        assert len(weekly.todays(few, days=days)) < len(few)
        tried += weekly.todays(few, days=days)
    assert sorted(tried) == few
    monkeypatch.setattr(weekly, "ALL", True)
    assert weekly.todays(few, of=[*few, "more"], days=days) == [*few, "more"]


def test_a_test_runs_on_one_day_in_three_and_once_a_week(monkeypatch: pytest.MonkeyPatch) -> None:
    def skipped_days() -> list[int]:
        found = []
        for day in range(3):
            monkeypatch.setattr(weekly, "DAY", day)
            found += [day] * bool(weekly.on_day(1).args[0])
        return found

    monkeypatch.setattr(weekly, "ALL", False)
    assert skipped_days() == [0, 2]
    monkeypatch.setattr(weekly, "ALL", True)
    assert skipped_days() == []
