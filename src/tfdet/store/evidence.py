"""The evidence store: matrix/evidence/<device>/<environment>.jsonl, sorted, written by the tool only.

An installed tfdet reads the records that it ships with, and writes its user's records into a folder of files with the
same names.  An envelope (DSSE) is a signed statement about a batch of records.  Records and their envelopes are written
in one transaction: a kill leaves all old ones or all new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from tfdet.base.errors import DataError
from tfdet.base.files import Transaction, part_path, write_error
from tfdet.base.folders import is_there, list_in_subfolders
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
    """Reads and extends the stored records.

    Args:
        folder: the records that tfdet ships with.
        user_folder: the records of this user, to which new ones are added; by default `folder`, as in a checkout.
        hashes: returns {source: hashes of its current cases}; called if a case has records of several versions.
        find_faults: returns why a record does not fit the matrix; by default records are not compared with a matrix.
    """

    def __init__(
        self,
        folder: Path,
        user_folder: Path | None = None,
        hashes: Hashes = dict,
        find_faults: FindFaults | None = None,
    ) -> None:
        self.folder = folder
        self.user_folder = user_folder or folder
        self.find_faults = find_faults
        self._hashes = hashes

    @classmethod
    def open(cls, project: Project, rules: ConsistencyRules | None = None) -> EvidenceStore:
        """Open the store of a project. rules: of its matrix and suite, if they were read before."""
        hashes = rules.cases.hashes if rules else partial(current_hashes, project)
        find_faults = rules.faults_of_stored if rules else _LazyRules(project)
        return cls(project.evidence, project.user_evidence, hashes, find_faults)

    @property
    def _transaction(self) -> Transaction:
        return Transaction(self.user_folder / ".commit.json", [self.user_folder, folder_of(self.user_folder)])

    def files(self) -> list[Path]:
        """Return the files, one for each device and environment: the shipped ones first, then the user's.

        A transaction of a killed process is finished or undone before anything is read.
        """
        self._recover()
        folders = dict.fromkeys([self.folder, self.user_folder])
        return [path for folder in folders for path in list_in_subfolders(folder, "*.jsonl", [EARLIER_HASHES])]

    def _recover(self) -> None:
        transaction = self._transaction
        if not transaction.is_pending and not transaction.leftovers():
            return
        try:
            with FileLock(self.user_folder / ".store.lock", timeout=-1 if transaction.is_pending else 0):
                transaction.recover()
        except Timeout:  # another process holds the lock: its files are in use, not left over
            return
        except OSError as error:
            if transaction.is_pending:
                advice = "A user with write access began this change: run tfdet as that user to finish it."
                raise DataError(f"{error.filename or self.user_folder}: {error.strerror}", advice) from error

    def path(self, device: str, environment: str) -> Path:
        return self.user_folder / device / f"{environment}.jsonl"

    def record_lines(self, path: Path, written: Path | None = None) -> Iterator[RecordLine]:
        """Yield the records of one file; raise DataError if one is in the wrong file, duplicate or not sorted.

        written: the temporary file that will become `path`, which is read in its place.
        """
        partition = (path.parent.name, path.stem)
        last_key: tuple[str, ...] = ()
        checksums: set[str] = set()  # of the records with this sort key: several signers can have one each
        for row in read_record_lines(written or path, self.find_faults):
            record = row.record
            if (record.model, record.environment) != partition:
                raise DataError(f"{path}: holds a record of {record.model}/{record.environment}", _RESTORE_ADVICE)
            key = record.sort_key
            if last_key > key or (last_key == key and record.checksum in checksums):
                raise DataError(f"{path}: {_describe(record)} is there twice, or out of its order", _RESTORE_ADVICE)
            checksums = checksums | {record.checksum} if key == last_key else {record.checksum}
            last_key = key
            yield row

    def read(self, path: Path) -> Iterator[Record]:
        """Yield the records of one file as complete Records, which is slower than `record_lines`."""
        return (record for _, record in self._read_twice(path))

    def find_faults_of(self, path: Path, find_faults: FindFaults) -> list[str]:
        """Return why records of one file do not fit, as messages; each line is checked by both readers."""
        return [fault for row, _ in self._read_twice(path) for fault in find_faults(row.record)]

    def _read_twice(self, path: Path) -> Iterator[tuple[RecordLine, Record]]:
        """Read each record with `record_lines` and `parse`; raise DataError if only one of them accepts it."""
        for row in self.record_lines(path):
            try:
                yield row, parse(row.line)
            except ValueError as error:
                number = list(read_lines(path)).index(row.line) + 1
                raise DataError(f"{path}:{number}: {error}", _RESTORE_ADVICE) from error

    def envelopes(self, path: Path) -> Iterator[str]:
        """Yield the envelopes that the store has for one of its files."""
        bundles = dict.fromkeys(_bundle_path(records) for records in (self._shipped_path(path), path))
        return (line for bundle in bundles for _, line in read_bundle(bundle))

    @contextmanager
    def prepare_merge(
        self, records: Iterable[Record | RecordLine], attestations: Iterable[Attestation] = ()
    ) -> Iterator[tuple[Merge, IngestResult]]:
        """Merge these records with the stored ones of the same devices and environments; nothing is written."""
        merge = Merge(earlier_hashes(self.folder), self._hashes)
        try:
            merge.add_lines(self._without_faults(records), new=True)
            for partition in merge.partitions:
                path = self.path(*partition)
                for file in dict.fromkeys([self._shipped_path(path), path]):
                    if is_there(file):
                        merge.add_lines(self.record_lines(file), shipped=file != path)
                merge.add_signers(unverified_signers(self.envelopes(path)))
            merge.add_signers(unverified_signers(attestation.line for attestation in attestations))
            yield merge, merge.resolve()
        finally:
            merge.close()

    def _without_faults(self, records: Iterable[Record | RecordLine]) -> Iterator[RecordLine]:
        """Yield the same records; raise DataError if one does not fit the matrix, and so could not be read again."""
        for record in records:
            row = record if isinstance(record, RecordLine) else to_record_line(record)
            if self.find_faults and (faults := self.find_faults(row.record)):
                raise DataError("\n".join(faults), "No records were added: the store would become unreadable.")
            yield row

    def _shipped_path(self, path: Path) -> Path:
        return self.folder / path.relative_to(self.user_folder)

    def ingest(self, records: Iterable[Record | RecordLine], attestations: Iterable[Attestation] = ()) -> IngestResult:
        """Add records and their envelopes, all or none; merge.py decides which records are stored.

        Raises:
            DataError: a record does not fit the matrix, or a stored file is damaged.
        """
        attestations = list(attestations)
        try:
            self.user_folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.user_folder / ".store.lock"):
                transaction = self._transaction
                transaction.recover()
                with self.prepare_merge(records, attestations) as (merge, result):
                    try:
                        self._write(transaction, merge, attestations)
                        transaction.commit()
                    finally:
                        transaction.recover()
        except OSError as error:
            raise write_error(Path(error.filename or self.user_folder), error, "no record was changed") from error
        return result

    def _write(self, transaction: Transaction, merge: Merge, attestations: list[Attestation]) -> None:
        """Write the new files, and read them as `status` will: a file that cannot be read is not committed."""
        for partition in merge.partitions:
            path = self.path(*partition)
            with transaction.new(path) as out:
                out.writelines(merge.lines_to_write(partition))
            for _ in self.record_lines(path, part_path(path)):
                pass
        envelopes_by_path: dict[Path, list[str]] = {}
        for attestation in attestations:
            envelopes_by_path.setdefault(_bundle_path(self.path(*attestation.partition)), []).append(attestation.line)
        for path, envelopes in envelopes_by_path.items():
            with transaction.new(path) as out:
                out.writelines(f"{line}\n".encode() for line in _with_new(read_bundle(path), envelopes))


_RESTORE_ADVICE = "Restore the file (git checkout) or remove that line; then run: tfdet status --check"


class _LazyRules:
    """The consistency rules of a project, loaded at the first record."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._rules: ConsistencyRules | None = None

    def __call__(self, record: FastRecord) -> list[str]:
        if self._rules is None:
            project = self._project
            self._rules = ConsistencyRules.from_matrix(
                load_matrix(project.matrix, project.user_keys), current_cases(project)
            )
        return self._rules.faults_of_stored(record)


def _describe(record: FastRecord) -> str:
    return " ".join((record.environment, record.model, record.source, record.case, record.solution))


def _with_new(stored: Iterable[tuple[int, str]], new: Iterable[str]) -> Iterator[str]:
    """Yield each envelope once, the stored ones first."""
    missing = dict.fromkeys(new)
    for _, line in stored:
        missing.pop(line, None)
        yield line
    yield from missing


def _bundle_path(path: Path) -> Path:
    """Return the path of the envelopes that belong to a file of records."""
    return folder_of(path.parents[1]) / path.parent.name / f"{path.stem}{SUFFIX}"
