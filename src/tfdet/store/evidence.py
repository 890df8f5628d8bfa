"""The evidence store: matrix/evidence/<device>/<environment>.jsonl, sorted, written by the tool only.

An installed tfdet reads what it brings, and writes what its user measures into files of the same names elsewhere.
Records and the envelopes that vouch for them are written as one: a kill leaves all of the old ones or all of the new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from tfdet.base.errors import DataError
from tfdet.base.files import Transaction, part_path, write_error
from tfdet.base.folders import in_folders, is_there
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_lines
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import EARLIER_HASHES, current_cases, current_hashes, earlier_hashes
from tfdet.store.consistency import ConsistencyRules
from tfdet.store.fast_records import FastRecord, FindFaults, RecordLine, read_record_lines, to_record_line
from tfdet.store.merge import Hashes, IngestResult, Merge
from tfdet.store.records import Record, parse
from tfdet.store.signatures import SUFFIX, Attestation, folder_of, read_bundle, unverified_signers


class EvidenceStore:
    """folder: of all records that came with tfdet; own: where records are taken into, the same folder in a checkout;
    hashes: {source: those of its cases as they are}, asked for where one place has records of several; fits: by which
    everything is read, as `status` will read it.
    """

    def __init__(
        self, folder: Path, own: Path | None = None, hashes: Hashes = dict, fits: FindFaults | None = None
    ) -> None:
        self.folder = folder
        self.own = own or folder
        self.fits = fits
        self._hashes = hashes

    @classmethod
    def open(cls, project: Project, rules: ConsistencyRules | None = None) -> EvidenceStore:
        """rules: of its matrix and suite, where they were read before."""
        hashes = rules.cases.hashes if rules else partial(current_hashes, project)
        fits = rules.faults_of_stored if rules else _LazyRules(project)
        return cls(project.evidence, project.user_evidence, hashes, fits)

    @property
    def _transaction(self) -> Transaction:
        return Transaction(self.own / ".commit.json", [self.own, folder_of(self.own)])

    def files(self) -> list[Path]:
        """Those of one device and environment: what came with tfdet before what was added.

        What a process that was killed had begun is finished, or undone, before anything is read.
        """
        self._recover()
        folders = dict.fromkeys([self.folder, self.own])
        return [path for folder in folders for path in in_folders(folder, "*.jsonl", [EARLIER_HASHES])]

    def _recover(self) -> None:
        transaction = self._transaction
        if not transaction.is_pending and not transaction.leftovers():
            return
        try:
            with FileLock(self.own / ".store.lock", timeout=-1 if transaction.is_pending else 0):
                transaction.recover()
        except Timeout:  # somebody is at work there: what lies there is not left over
            return
        except OSError as error:
            if transaction.is_pending:
                advice = "It was begun by who may write there, and is finished by the same: run tfdet as that user."
                raise DataError(f"{error.filename or self.own}: {error.strerror}", advice) from error

    def path(self, device: str, environment: str) -> Path:
        return self.own / device / f"{environment}.jsonl"

    def record_lines(self, path: Path, lying: Path | None = None) -> Iterator[RecordLine]:
        """The records of one file of the store: each where its key says, sorted, none twice.

        lying: where the file is before it is in its place.
        """
        place = (path.parent.name, path.stem)
        before: tuple[str, ...] = ()
        alike: set[str] = set()  # records of one statement, of different keys
        for row in read_record_lines(lying or path, self.fits):
            g = row.record
            if (g.model, g.environment) != place:
                raise DataError(f"{path}: holds a record of {g.model}/{g.environment}", _MOVED)
            order = g.sort_key
            if before > order or (before == order and g.checksum in alike):
                raise DataError(f"{path}: {_describe(g)} is there twice, or out of its order", _MOVED)
            alike = alike | {g.checksum} if order == before else {g.checksum}
            before = order
            yield row

    def read(self, path: Path) -> Iterator[Record]:
        """The same, each read a second time and whole."""
        for row in self.record_lines(path):
            try:
                yield parse(row.line)
            except ValueError as error:
                number = list(read_lines(path)).index(row.line) + 1
                raise DataError(f"{path}:{number}: {error}", _MOVED) from error

    def envelopes(self, path: Path) -> Iterator[str]:
        """What lies in the store for a file of it."""
        places = dict.fromkeys(_bundle_path(place) for place in (self._shipped_path(path), path))
        return (line for place in places for _, line in read_bundle(place))

    @contextmanager
    def prepare_merge(
        self, records: Iterable[Record | RecordLine], attestations: Iterable[Attestation] = ()
    ) -> Iterator[tuple[Merge, IngestResult]]:
        """All that would be known of the places of these records; nothing is written."""
        merge = Merge(earlier_hashes(self.folder), self._hashes)
        try:
            merge.add_lines(self._fitting(records), new=True)
            for place in merge.partitions:
                path = self.path(*place)
                brought = self._shipped_path(path)
                for there in dict.fromkeys([brought, path]):
                    if is_there(there):
                        merge.add_lines(self.record_lines(there), brought=there != path)
                merge.add_signers(unverified_signers(self.envelopes(path)))
            merge.add_signers(unverified_signers(attestation.line for attestation in attestations))
            yield merge, merge.resolve()
        finally:
            merge.close()

    def _fitting(self, records: Iterable[Record | RecordLine]) -> Iterator[RecordLine]:
        """DataError where one could not be read again."""
        for record in records:
            row = record if isinstance(record, RecordLine) else to_record_line(record)
            if self.fits and (faults := self.fits(row.record)):
                raise DataError("\n".join(faults), "No records were added: the store would become unreadable.")
            yield row

    def _shipped_path(self, path: Path) -> Path:
        return self.folder / path.relative_to(self.own)

    def ingest(self, records: Iterable[Record | RecordLine], attestations: Iterable[Attestation] = ()) -> IngestResult:
        """Take records in, all or none, with the envelopes that vouch for them; see merge.py for what is kept."""
        attestations = list(attestations)
        try:
            self.own.mkdir(parents=True, exist_ok=True)
            with FileLock(self.own / ".store.lock"):
                transaction = self._transaction
                transaction.recover()
                with self.prepare_merge(records, attestations) as (merge, added):
                    try:
                        self._write(transaction, merge, attestations)
                        transaction.commit()
                    finally:
                        transaction.recover()
        except OSError as error:
            raise write_error(Path(error.filename or self.own), error, "no record was changed") from error
        return added

    def _write(self, transaction: Transaction, merge: Merge, attestations: list[Attestation]) -> None:
        """And read what was written back, as `status` will: what it could not read is not committed."""
        for place in merge.partitions:
            path = self.path(*place)
            with transaction.new(path) as out:
                out.writelines(merge.lines_to_write(place))
            for _ in self.record_lines(path, part_path(path)):
                pass
        more: dict[Path, list[str]] = {}
        for attestation in attestations:
            more.setdefault(_bundle_path(self.path(*attestation.partition)), []).append(attestation.line)
        for path, new in more.items():
            with transaction.new(path) as out:
                out.writelines(f"{line}\n".encode() for line in _with_new(read_bundle(path), new))


_MOVED = "Bring the file back (git checkout), or take that line out; then: tfdet status --check."


class _LazyRules:
    """The rules of a project, read when the first record is."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._rules: ConsistencyRules | None = None

    def __call__(self, g: FastRecord) -> list[str]:
        if self._rules is None:
            project = self._project
            self._rules = ConsistencyRules.from_matrix(
                load_matrix(project.matrix, project.user_keys), current_cases(project)
            )
        return self._rules.faults_of_stored(g)


def _describe(g: FastRecord) -> str:
    return " ".join((g.environment, g.model, g.source, g.case, g.solution))


def _with_new(there: Iterable[tuple[int, str]], new: Iterable[str]) -> Iterator[str]:
    """Each envelope once, what is there first."""
    missing = dict.fromkeys(new)
    for _, line in there:
        missing.pop(line, None)
        yield line
    yield from missing


def _bundle_path(path: Path) -> Path:
    """Of a file of records of the store."""
    return folder_of(path.parents[1]) / path.parent.name / f"{path.stem}{SUFFIX}"
