"""What the evidence of each day changed, by the records' own time stamps: nothing else remembers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfdet.site.urls import cell_url
from tfdet.store.fast_records import summarize
from tfdet.store.records import Record
from tfdet.verdicts.infer import CellKey, EvidenceIndex, Verdict


@dataclass(frozen=True)
class VerdictChange:
    """A cell whose verdict is another after a day's records than before them."""

    day: str
    key: CellKey
    before: str
    after: str

    @property
    def page(self) -> str:
        return cell_url(self.key)

    def data(self) -> dict[str, Any]:
        return {"day": self.day, **self.key._asdict(), "before": self.before, "after": self.after, "page": self.page}


class History:
    """Records of one environment, day by day; a record that gave way to a better one is not there."""

    def __init__(self, hashes: Mapping[str, set[str]]) -> None:
        self._hashes = hashes
        self._days: dict[str, list[Record]] = defaultdict(list)

    def changes(self, records: Iterable[Record]) -> list[VerdictChange]:
        for record in records:
            self._days[record.started[:10]].append(record)
        evidence, told, found = EvidenceIndex(self._hashes), dict[CellKey, Verdict](), list[VerdictChange]()
        for day in sorted(self._days):
            evidence.extend(map(summarize, self._days[day]))
            for key in sorted(evidence.cell_keys()):
                now = evidence.cell(key).verdict
                before = told.get(key, Verdict.BLANK)
                if now is not before:
                    found.append(VerdictChange(day, key, str(before), str(now)))
                told[key] = now
        return found


def sort_changes(changes: Iterable[VerdictChange]) -> list[VerdictChange]:
    """The newest day first; what anybody wants to hear of before what only repeats."""
    loud = [
        str(v) for v in (Verdict.NONDETERMINISTIC, Verdict.SCHEDULE_INDEPENDENT, Verdict.DETERMINISTIC, Verdict.RAISES)
    ]
    by_cell = sorted(changes, key=lambda c: (c.after not in loud, not c.before, c.key))
    return sorted(by_cell, key=lambda c: c.day, reverse=True)
