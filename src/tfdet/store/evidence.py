"""The evidence store: matrix/evidence/<device>/<environment>.jsonl, sorted, written by the tool only.

An installed tfdet reads what it brings, and writes what its user measures into files of the same names elsewhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from tfdet.base.errors import DataError
from tfdet.base.files import write_whole
from tfdet.base.paths import Project
from tfdet.store.cases import current_hashes, earlier_hashes
from tfdet.store.records import Record, checksums, read_records
from tfdet.store.signatures import SUFFIX, UNSIGNED, Vouch, claimed, folder_of, lines


@dataclass
class Added:
    """What `add` did; a conflict is one key on which machines, or runs, do not agree."""

    taken: int = 0
    known: int = 0
    replaced: int = 0
    conflicts: list[str] = field(default_factory=list)


Hashes = Callable[[], Mapping[str, set[str]]]


class Store:
    """folder: of all records that came with tfdet; own: where records are taken into, the same folder in a checkout;
    hashes: {source: those of its cases as they are}, asked for where one place has records of several."""

    def __init__(self, folder: Path, own: Path | None = None, hashes: Hashes = dict) -> None:
        self.folder = folder
        self.own = own or folder
        self._hashes = hashes

    @classmethod
    def of(cls, project: Project) -> Store:
        return cls(project.evidence, project.own_evidence, partial(current_hashes, project))

    def files(self) -> list[Path]:
        """Those of one device and environment: what came with tfdet before what was added."""
        return [path for folder in dict.fromkeys([self.folder, self.own]) for path in sorted(folder.glob("*/*.jsonl"))]

    def path(self, device: str, environment: str) -> Path:
        return self.own / device / f"{environment}.jsonl"

    def read(self, path: Path) -> Iterator[Record]:
        """The records of one file of the store: each where its key says, sorted, none twice."""
        before: tuple[str, ...] | None = None
        signed = self._signed(path)
        for record in read_records(path):
            if (record.device.model, record.environment) != (path.parent.name, path.stem):
                raise DataError(f"{path}: holds a record of {record.device.model}/{record.environment}")
            order = _order(record, signed)
            if before is not None and before >= order:
                raise DataError(f"{path}: {' '.join(record.key)} is there twice, or out of its order")
            before = order
            yield record

    def envelopes(self, path: Path) -> list[str]:
        """What lies in the store for a file of it."""
        places = dict.fromkeys(_envelopes_of(place) for place in (self._brought(path), path))
        return [line for place in places for line in lines(place)]

    def _signed(self, path: Path, more: Iterable[str] = ()) -> Mapping[str, str]:
        """{checksum: key} of the place of a file of the store."""
        own = self.own / path.parent.name / path.name
        return claimed([*self.envelopes(own), *more])

    def merged(
        self, records: Iterable[Record], vouches: Iterable[Vouch] = ()
    ) -> tuple[dict[Path, list[Record]], Added]:
        """The files that would change, with all that would be known of their place then; nothing is written."""
        added, more = Added(), [vouch.line for vouch in vouches]
        by_file: dict[Path, list[Record]] = defaultdict(list)
        for record in records:
            by_file[self.path(record.device.model, record.environment)].append(record)
        earlier = earlier_hashes(self.folder)
        kept = {}
        for path, news in by_file.items():
            told = _Told(earlier, self._signed(path, more), self._hashes)
            kept[path] = _merge(self._there(path), news, added, told)
        return kept, added

    def _there(self, path: Path) -> list[Record]:
        """All that is known of one device and environment."""
        places = dict.fromkeys([self._brought(path), path])
        return [record for place in places if place.exists() for record in self.read(place)]

    def _brought(self, path: Path) -> Path:
        return self.folder / path.relative_to(self.own)

    def add(self, records: Iterable[Record], vouches: Iterable[Vouch] = ()) -> Added:
        """Take records in, all or none, with the envelopes that vouch for them.

        None is lost: a statement gives way only to the same one of the same key, better made, and what was measured of
        a case that has changed to what the same key says of it as it is.  In which order they came does not matter.
        """
        vouches = list(vouches)
        self.own.mkdir(parents=True, exist_ok=True)
        with FileLock(self.own / ".store.lock"):
            merged, added = self.merged(records, vouches)
            self._keep(vouches)  # first: an envelope without its records vouches for nothing
            for path, kept in merged.items():
                brought = self._brought(path)
                known = checksums(brought) if brought != path and brought.exists() else ()
                text = "".join(record.line() for record in kept if record.checksum not in known)
                write_whole(path, text, kept="no record was changed")
        return added

    def _keep(self, vouches: Iterable[Vouch]) -> None:
        for vouch in vouches:
            path = _envelopes_of(self.path(*vouch.place))
            told = lines(path)
            if vouch.line not in told:
                write_whole(path, "".join(f"{line}\n" for line in [*told, vouch.line]), kept="no envelope was lost")


def _envelopes_of(path: Path) -> Path:
    """Of a file of records of the store."""
    return folder_of(path.parents[1]) / path.parent.name / f"{path.stem}{SUFFIX}"


class _Told(NamedTuple):
    """What no record says of itself: the hash of its case as it is made today; {checksum: the key that signed it}; the
    hashes of the cases that there are."""

    earlier: Mapping[str, str]
    signed: Mapping[str, str]
    hashes: Hashes

    def case(self, record: Record) -> str:
        return self.earlier.get(record.case_hash, record.case_hash)

    def place(self, record: Record) -> tuple[str, ...]:
        """Records of different keys, or of none, never give way to each other: an unsigned one may be anybody's."""
        return (*record.key, *record.origin, self.signed.get(record.checksum, UNSIGNED))

    def statement(self, record: Record) -> tuple[str, ...]:
        """What makes two records the same statement: only such a one may be replaced."""
        return (*self.place(record), self.case(record), record.observation)


def _order(record: Record, signed: Mapping[str, str]) -> tuple[str, ...]:
    return (record.source, record.case, record.solution, *record.origin, record.case_hash, record.observation,
            signed.get(record.checksum, UNSIGNED))  # fmt: skip


def _merge(olds: list[Record], news: list[Record], added: Added, told: _Told) -> list[Record]:
    kept = {told.statement(record): record for record in olds}
    for record in news:
        statement = told.statement(record)
        old = kept.get(statement)
        if old is not None and not _better(record, old):
            added.known += 1
            continue
        added.replaced += old is not None
        added.taken += 1
        kept[statement] = record
    current = _without_superseded(list(kept.values()), told)
    _name_conflicts(current, news, added)
    return sorted(current, key=lambda record: _order(record, told.signed))


def _better(record: Record, old: Record) -> bool:
    """More was run, or as much and later: of any two it is always the same one."""
    return _worth(record) > _worth(old)


def _worth(record: Record) -> tuple[int, str, str]:
    return record.runs, record.started, record.checksum


def _without_superseded(records: list[Record], told: _Told) -> list[Record]:
    """Where a machine has measured a case as it is, its records of other forms are needed no more.

    Of a form that is not the suite's nobody knows whether it is newer: it takes nothing away.
    """
    forms: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for record in records:
        forms[told.place(record)].add(told.case(record))
    if all(len(some) == 1 for some in forms.values()):
        return records
    known = told.hashes()

    def is_current(record: Record) -> bool:
        return told.case(record) in known.get(record.source, ())

    renewed = {told.place(record) for record in records if is_current(record)}
    return [r for r in records if is_current(r) or told.place(r) not in renewed]


def _name_conflicts(records: list[Record], news: list[Record], added: Added) -> None:
    by_key: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in records:
        by_key[record.key].append(record)
    for key in sorted({record.key for record in news}):
        group = by_key[key]
        if len({record.observation for record in group}) > 1:
            said = ", ".join(f"{r.observation} on machine {r.machine} ({r.started})" for r in group)
            added.conflicts.append(f"{' '.join(key)}: both kept: {said}")
