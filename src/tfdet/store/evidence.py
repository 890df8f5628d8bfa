"""The evidence store: matrix/evidence/<device>/<environment>.jsonl, sorted, written by the tool only.

An installed tfdet reads what it brings, and writes what its user measures into files of the same names elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from tfdet.base.errors import DataError
from tfdet.base.files import write_whole
from tfdet.base.paths import Project
from tfdet.store.cases import earlier_hashes
from tfdet.store.records import Record, checksums, read_records


@dataclass
class Added:
    """What `add` did; a conflict is one key on which machines, or runs, do not agree."""

    taken: int = 0
    known: int = 0
    replaced: int = 0
    conflicts: list[str] = field(default_factory=list)


class Store:
    """folder: of all records that came with tfdet; own: where records are taken into, the same folder in a checkout."""

    def __init__(self, folder: Path, own: Path | None = None) -> None:
        self.folder = folder
        self.own = own or folder

    @classmethod
    def of(cls, project: Project) -> Store:
        return cls(project.evidence, project.own_evidence)

    def files(self) -> list[Path]:
        """Those of one device and environment: what came with tfdet before what was added."""
        return [path for folder in dict.fromkeys([self.folder, self.own]) for path in sorted(folder.glob("*/*.jsonl"))]

    def path(self, device: str, environment: str) -> Path:
        return self.own / device / f"{environment}.jsonl"

    def read(self, path: Path) -> Iterator[Record]:
        """The records of one file of the store: each where its key says, sorted, none twice."""
        before: tuple[str, ...] | None = None
        for record in read_records(path):
            if (record.device.model, record.environment) != (path.parent.name, path.stem):
                raise DataError(f"{path}: holds a record of {record.device.model}/{record.environment}")
            if before is not None and before >= _order(record):
                raise DataError(f"{path}: {' '.join(record.key)} is there twice, or out of its order")
            before = _order(record)
            yield record

    def merged(self, records: Iterable[Record]) -> tuple[dict[Path, list[Record]], Added]:
        """The files that would change, with all that would be known of their place then; nothing is written."""
        added = Added()
        by_file: dict[Path, list[Record]] = defaultdict(list)
        for record in records:
            by_file[self.path(record.device.model, record.environment)].append(record)
        earlier = earlier_hashes(self.folder)
        return {path: _merge(self._there(path), news, added, earlier) for path, news in by_file.items()}, added

    def _there(self, path: Path) -> list[Record]:
        """All that is known of one device and environment."""
        places = dict.fromkeys([self._brought(path), path])
        return [record for place in places if place.exists() for record in self.read(place)]

    def _brought(self, path: Path) -> Path:
        return self.folder / path.relative_to(self.own)

    def add(self, records: Iterable[Record]) -> Added:
        """Take records in, all or none.  None is lost: a statement gives way only to the same one, better made."""
        self.own.mkdir(parents=True, exist_ok=True)
        with FileLock(self.own / ".store.lock"):
            merged, added = self.merged(records)
            for path, kept in merged.items():
                brought = self._brought(path)
                known = checksums(brought) if brought != path and brought.exists() else ()
                text = "".join(record.line() for record in kept if record.checksum not in known)
                write_whole(path, text, kept="no record was changed")
        return added


def _order(record: Record) -> tuple[str, ...]:
    return (record.source, record.case, record.solution, *record.origin, record.case_hash, record.observation)


def _merge(olds: list[Record], news: list[Record], added: Added, earlier: Mapping[str, str]) -> list[Record]:
    kept = {_statement(record, earlier): record for record in olds}
    for record in news:
        statement = _statement(record, earlier)
        old = kept.get(statement)
        if old is not None and not _better(record, old):
            added.known += 1
            continue
        added.replaced += old is not None
        added.taken += 1
        kept[statement] = record
    current = _without_superseded(list(kept.values()), earlier)
    _name_conflicts(current, news, added)
    return sorted(current, key=_order)


def _statement(record: Record, earlier: Mapping[str, str]) -> tuple[str, ...]:
    """What makes two records the same statement: only such a one may be replaced."""
    return (*record.key, *record.origin, earlier.get(record.case_hash, record.case_hash), record.observation)


def _better(record: Record, old: Record) -> bool:
    """As much was run, and later: fewer runs never replace more."""
    return record.checksum != old.checksum and record.runs >= old.runs and record.started >= old.started


def _without_superseded(records: list[Record], earlier: Mapping[str, str]) -> list[Record]:
    """Where a machine measured a changed case anew, its records of the older form are needed no more."""
    newest: dict[tuple[str, ...], Record] = {}
    for record in records:
        place = (*record.key, *record.origin)
        if place not in newest or newest[place].started < record.started:
            newest[place] = record

    def case(record: Record) -> str:
        return earlier.get(record.case_hash, record.case_hash)

    return [r for r in records if case(newest[(*r.key, *r.origin)]) == case(r)]


def _name_conflicts(records: list[Record], news: list[Record], added: Added) -> None:
    by_key: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
    for key in sorted({record.key for record in news}):
        group = by_key[key]
        if len({record.observation for record in group}) > 1:
            said = ", ".join(f"{r.observation} on machine {r.machine} ({r.started})" for r in group)
            added.conflicts.append(f"{' '.join(key)}: both kept: {said}")
