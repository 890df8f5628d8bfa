"""Merge new records with those of a store: sort them and choose which to keep, in a temporary SQLite database.

The database is on disk because there may be a million records.  A record is replaced only by one of the same signing
key: by a better record of the same observation, or, if the case has changed since, by a record of its current version.
The result does not depend on the order in which the records were added.
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
MAX_LISTED_CONFLICTS = 8  # records listed in the message about one conflict


@dataclass
class IngestResult:
    """Numbers of records that a merge added, found again, or replaced, and the conflicts.

    A conflict is a message about records of the same device, environment, source, case and solution with different
    observations, such as `equal` and `differs`.
    """

    ingested: int = 0
    duplicates: int = 0
    replaced: int = 0
    conflicts: list[str] = field(default_factory=list)


# Records replace others only with equal columns of _PLACE; of those with equal columns of _STATEMENT the best is kept.
_KEY = 'device, environment, source, "case", solution'
_PLACE = f"{_KEY}, origin, signer"  # records with different signers, or of none, never replace each other
_STATEMENT = f"{_PLACE}, form, observation, proof <> ''"  # a run with a proof does not replace many runs without one
_ORDER = 'source, "case", solution, origin, case_hash, observation, checksum'
# origin: the machine and software stack (provenance_key).  form: case_hash, converted to the current hash method.
# proof: empty (none was tried), `proved` or `failed`.
_TABLES = f"""
PRAGMA cache_size = -16384;
PRAGMA temp_store = FILE;
PRAGMA journal_mode = OFF;
CREATE TABLE record (
  {_KEY}, origin, case_hash, observation, checksum, form, proof, machine, runs, started, is_new, shipped, line
);
CREATE TABLE signature (checksum PRIMARY KEY, signer) WITHOUT ROWID;
"""
# Rank the records of a statement, best first: more runs, then the later start, then the checksum (for a fixed order).
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
# If a machine has measured the current form of a case, its records of other forms are deleted.  Records of a form that
# is not in the suite delete nothing, as that form may be older.
_SUPERSEDE = f"""
DELETE FROM ranked WHERE NOT is_current(source, form)
AND ({_PLACE}) IN (SELECT {_PLACE} {_SEVERAL_FORMS} AND max(is_current(source, form)))
"""
# Equal runs whose proof failed are too few to contradict a record that differs.
_WEIGHTY = "NOT (proof = 'failed' AND observation = 'equal')"
_CONFLICTS = f"""
SELECT {_KEY}, observation, machine, started FROM ranked
WHERE {_WEIGHTY}
AND ({_KEY}) IN (SELECT {_KEY} FROM ranked WHERE {_WEIGHTY} GROUP BY {_KEY} HAVING count(DISTINCT observation) > 1)
AND ({_KEY}) IN (SELECT {_KEY} FROM record WHERE is_new)
ORDER BY {_KEY}, origin, case_hash, observation, checksum
"""


class Merge:
    """The records of some devices and environments, the stored and the new ones, in a temporary database.

    earlier: {earlier hash of a case: its hash when the method of hashing changed}.
    hashes: returns {source: hashes of its current cases}; called only if records of several forms of a case exist.
    """

    def __init__(self, earlier: Mapping[str, str], hashes: Hashes) -> None:
        self._earlier, self._hashes = earlier, hashes
        self._database = sqlite3.connect("")  # on disk, without a name: it ends with this process
        self._database.executescript(_TABLES)

    @property
    def partitions(self) -> list[Partition]:
        """The devices and environments of the new records."""
        query = "SELECT DISTINCT device, environment FROM record WHERE is_new ORDER BY 1, 2"
        return list(self._database.execute(query))

    def add_lines(self, rows: Iterable[RecordLine], *, new: bool = False, shipped: bool = False) -> None:
        """Add records.  new: not stored yet.  shipped: shipped with tfdet, so not written again."""
        with _report_full_disk():
            self._database.executemany(
                f"INSERT INTO record VALUES ({', '.join(17 * '?')})",
                (self._values(row, new, shipped) for row in rows),
            )

    def _values(self, row: RecordLine, new: bool, shipped: bool) -> tuple[object, ...]:
        record = row.record
        form = self._earlier.get(record.case_hash, record.case_hash)
        proof = "" if not record.proof else "proved" if record.proof.is_proved else "failed"
        return (record.model, record.environment, record.source, record.case, record.solution,
                "\0".join(record.provenance_key), record.case_hash, record.observation, record.checksum, form, proof,
                record.machine, record.runs, record.started, new, shipped, row.line)  # fmt: skip

    def add_signers(self, signers: Iterable[tuple[str, str]]) -> None:
        """Add pairs (checksum, key hint); a record keeps its first signer."""
        with _report_full_disk():
            self._database.executemany("INSERT OR IGNORE INTO signature VALUES (?, ?)", signers)

    def resolve(self) -> IngestResult:
        """Delete the records that others replace; return the counts and the conflicts."""
        with _report_full_disk():
            self._database.execute(_CHOOSE)
            ingested, duplicates, replaced = self._database.execute(_COUNTS).fetchone()
            self._database.execute("DELETE FROM ranked WHERE place > 1")
            if self._database.execute(f"SELECT 1 {_SEVERAL_FORMS} LIMIT 1").fetchone():
                current = {(source, form) for source, forms in self._hashes().items() for form in forms}
                self._database.create_function("is_current", 2, lambda *source_and_form: source_and_form in current)
                self._database.execute(_SUPERSEDE)
            return IngestResult(ingested, duplicates, replaced, list(self._conflicts()))

    def _conflicts(self) -> Iterator[str]:
        rows = self._database.execute(_CONFLICTS)
        for key, records in groupby(rows, key=lambda row: row[:5]):
            texts = [f"{observation} on machine {machine} ({start})" for *_, observation, machine, start in records]
            more = f", and {len(texts) - MAX_LISTED_CONFLICTS} more" if len(texts) > MAX_LISTED_CONFLICTS else ""
            device, environment, *rest = key
            listed = ", ".join(texts[:MAX_LISTED_CONFLICTS])
            yield f"{' '.join([environment, device, *rest])}: both kept: {listed}{more}"

    def record_lines(self, partition: Partition) -> Iterator[RecordLine]:
        """Yield the remaining records of a partition, in the order of its file."""
        return (RecordLine(read_line(line), line) for line in self._lines(partition, "1"))

    def lines_to_write(self, partition: Partition) -> Iterator[bytes]:
        """Yield the lines of the same records, without those that were shipped with tfdet."""
        return self._lines(partition, "checksum NOT IN (SELECT checksum FROM record WHERE shipped)")

    def _lines(self, partition: Partition, condition: str) -> Iterator[bytes]:
        with _report_full_disk():
            query = f"SELECT id FROM ranked WHERE device = ? AND environment = ? AND {condition} ORDER BY {_ORDER}"
            for (number,) in self._database.execute(query, partition):
                (line,) = self._database.execute("SELECT line FROM record WHERE rowid = ?", (number,)).fetchone()
                yield line

    def close(self) -> None:
        self._database.close()


@contextmanager
def _report_full_disk() -> Iterator[None]:
    """Turn an SQLite error, such as that of a full disk, into a TfdetError with advice."""
    try:
        yield
    except sqlite3.OperationalError as error:
        advice = "Free some space there, or name another folder by TMPDIR; nothing was taken."
        raise TfdetError(f"no room to sort records in the folder for temporary files: {error}", advice) from error
