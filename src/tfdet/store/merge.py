"""Records of a store and new ones as what would be known then: sorted and chosen on disk, for there may be a million.

None is lost: a statement gives way only to the same one of the same key, better made, and what was measured of a case
that has changed to what the same key says of it as it is.  In which order they came does not matter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby

from tfdet.base.errors import TfdetError
from tfdet.store.fast_records import RecordLine, read_line

Partition = tuple[str, str]  # device, environment
Hashes = Callable[[], Mapping[str, set[str]]]
MAX_LISTED_CONFLICTS = 8  # of the records that do not agree on one key so many are told of


@dataclass
class IngestResult:
    """What `add` did; a conflict is one key on which machines, or runs, do not agree."""

    ingested: int = 0
    duplicates: int = 0
    replaced: int = 0
    conflicts: list[str] = field(default_factory=list)


_KEY = 'device, environment, source, "case", solution'
_PLACE = f"{_KEY}, origin, signer"  # records of different keys, or of none, never give way to each other
_STATEMENT = f"{_PLACE}, form, observation, proof <> ''"  # a run with a proof does not replace many runs without one
_ORDER = 'source, "case", solution, origin, case_hash, observation, checksum'
_TABLES = f"""
PRAGMA cache_size = -32768;
PRAGMA temp_store = FILE;
PRAGMA journal_mode = OFF;
CREATE TABLE record (
  {_KEY}, origin, case_hash, observation, checksum, form, proof, machine, runs, started, is_new, brought, line
);
CREATE TABLE signature (checksum PRIMARY KEY, signer) WITHOUT ROWID;
"""
# Of the records of a statement the best comes first: more was run, or as much and later; of any two always the same.
_CHOOSE = f"""
CREATE TABLE ranked AS
SELECT *,
  row_number() OVER (PARTITION BY {_STATEMENT} ORDER BY runs DESC, started DESC, checksum DESC, is_new) AS place,
  min(is_new) OVER (PARTITION BY {_STATEMENT}) AS all_new
FROM (
  SELECT record.rowid AS id, {_KEY}, origin, coalesce(signer, '') AS signer, case_hash, form, observation, proof,
    runs, started, checksum, machine, is_new
  FROM record LEFT JOIN signature USING (checksum)
)
"""
_COUNTS = """
SELECT coalesce(sum(place = 1), 0), coalesce(sum(place > 1), 0), coalesce(sum(place = 1 AND NOT all_new), 0)
FROM ranked WHERE is_new
"""
_SEVERAL_FORMS = f"FROM ranked GROUP BY {_PLACE} HAVING count(DISTINCT form) > 1"
# Where a machine has measured a case as it is, its records of other forms are needed no more.  Of a form that is not
# the suite's nobody knows whether it is newer: it takes nothing away.
_SUPERSEDE = f"""
DELETE FROM ranked WHERE NOT is_current(source, form)
AND ({_PLACE}) IN (SELECT {_PLACE} {_SEVERAL_FORMS} AND max(is_current(source, form)))
"""
# A run or two that are equal and not proved contradict nobody who saw a difference.
_WEIGHTY = "NOT (proof = 'failed' AND observation = 'equal')"
_CONFLICTS = f"""
SELECT {_KEY}, observation, machine, started FROM ranked
WHERE {_WEIGHTY}
AND ({_KEY}) IN (SELECT {_KEY} FROM ranked WHERE {_WEIGHTY} GROUP BY {_KEY} HAVING count(DISTINCT observation) > 1)
AND ({_KEY}) IN (SELECT {_KEY} FROM record WHERE is_new)
ORDER BY {_KEY}, origin, case_hash, observation, checksum
"""


class Merge:
    """earlier: {earlier hash of a case: its hash when the way of hashing changed}.

    hashes: {source: those of its cases as they are}, asked for where one place has records of several.
    """

    def __init__(self, earlier: Mapping[str, str], hashes: Hashes) -> None:
        self._earlier, self._hashes = earlier, hashes
        self._base = sqlite3.connect("")  # on disk, without a name: it ends with this process
        self._base.executescript(_TABLES)

    @property
    def partitions(self) -> list[Partition]:
        """Of what is new."""
        return list(self._base.execute("SELECT DISTINCT device, environment FROM record WHERE is_new ORDER BY 1, 2"))

    def add_lines(self, rows: Iterable[RecordLine], *, new: bool = False, brought: bool = False) -> None:
        """brought: they came with tfdet, and are not written again."""
        with _on_disk():
            self._base.executemany(
                f"INSERT INTO record VALUES ({', '.join(17 * '?')})",
                (self._values(row, new, brought) for row in rows),
            )

    def _values(self, row: RecordLine, new: bool, brought: bool) -> tuple[object, ...]:
        g = row.record
        form = self._earlier.get(g.case_hash, g.case_hash)
        proof = "" if not g.proof else "proved" if g.proof.is_proved else "failed"
        return (g.model, g.environment, g.source, g.case, g.solution, "\0".join(g.provenance_key), g.case_hash,
                g.observation, g.checksum, form, proof, g.machine, g.runs, g.started, new, brought,
                row.line)  # fmt: skip

    def add_signers(self, claimed: Iterable[tuple[str, str]]) -> None:
        """(checksum, the key by its hint); the first that signed a record stays its signer."""
        with _on_disk():
            self._base.executemany("INSERT OR IGNORE INTO signature VALUES (?, ?)", claimed)

    def resolve(self) -> IngestResult:
        """Choose what stays."""
        with _on_disk():
            self._base.execute(_CHOOSE)
            taken, known, replaced = self._base.execute(_COUNTS).fetchone()
            self._base.execute("DELETE FROM ranked WHERE place > 1")
            if self._base.execute(f"SELECT 1 {_SEVERAL_FORMS} LIMIT 1").fetchone():
                current = {(source, code) for source, codes in self._hashes().items() for code in codes}
                self._base.create_function("is_current", 2, lambda *form: form in current)
                self._base.execute(_SUPERSEDE)
            return IngestResult(taken, known, replaced, list(self._conflicts()))

    def _conflicts(self) -> Iterator[str]:
        found = self._base.execute(_CONFLICTS)
        for key, group in groupby(found, key=lambda row: row[:5]):
            said = [f"{observation} on machine {machine} ({started})" for *_, observation, machine, started in group]
            more = f", and {len(said) - MAX_LISTED_CONFLICTS} more" if len(said) > MAX_LISTED_CONFLICTS else ""
            device, environment, *rest = key
            yield f"{' '.join([environment, device, *rest])}: both kept: {', '.join(said[:MAX_LISTED_CONFLICTS])}{more}"

    def record_lines(self, place: Partition) -> Iterator[RecordLine]:
        """What is known then of a place, in the order of its file."""
        return (RecordLine(read_line(line), line) for line in self._lines(place, "1"))

    def lines_to_write(self, place: Partition) -> Iterator[bytes]:
        """The same as lines, but for what came with tfdet."""
        return self._lines(place, "checksum NOT IN (SELECT checksum FROM record WHERE brought)")

    def _lines(self, place: Partition, which: str) -> Iterator[bytes]:
        with _on_disk():
            asked = f"SELECT id FROM ranked WHERE device = ? AND environment = ? AND {which} ORDER BY {_ORDER}"
            for (number,) in self._base.execute(asked, place):
                (line,) = self._base.execute("SELECT line FROM record WHERE rowid = ?", (number,)).fetchone()
                yield line

    def close(self) -> None:
        self._base.close()


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        advice = "Free some space there, or name another folder by TMPDIR; nothing was taken."
        raise TfdetError(f"no room to sort records in the folder for temporary files: {error}", advice) from error
