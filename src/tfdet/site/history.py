"""The changes of verdicts on each day, computed from the time stamps of the records."""

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
    """A change of a cell's verdict by the records of one day."""

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
    """The records of one environment by day; records that better ones have replaced are not included.

    hashes: {source: hashes of its cases in the current suite}; records with other hashes are stale.
    """

    def __init__(self, hashes: Mapping[str, set[str]]) -> None:
        self._hashes = hashes
        self._days: dict[str, list[Record]] = defaultdict(list)

    def changes(self, records: Iterable[Record]) -> list[VerdictChange]:
        """Add records; return the changes of verdicts, the oldest first."""
        for record in records:
            self._days[record.started[:10]].append(record)
        evidence, verdicts, changes = EvidenceIndex(self._hashes), dict[CellKey, Verdict](), list[VerdictChange]()
        for day in sorted(self._days):
            evidence.extend(map(summarize, self._days[day]))
            for key in sorted(evidence.cell_keys()):
                after = evidence.cell(key).verdict
                before = verdicts.get(key, Verdict.BLANK)
                if after is not before:
                    changes.append(VerdictChange(day, key, str(before), str(after)))
                verdicts[key] = after
        return changes


def sort_changes(changes: Iterable[VerdictChange]) -> list[VerdictChange]:
    """Sort changes: the newest day first, and on each day conclusive verdicts and changed ones first."""
    conclusive = [
        str(verdict)
        for verdict in (Verdict.NONDETERMINISTIC, Verdict.SCHEDULE_INDEPENDENT, Verdict.DETERMINISTIC, Verdict.RAISES)
    ]
    by_cell = sorted(changes, key=lambda change: (change.after not in conclusive, not change.before, change.key))
    return sorted(by_cell, key=lambda change: change.day, reverse=True)
