"""A batch of records as an in-toto Statement v1 with the predicate `test-result`.

https://github.com/in-toto/attestation: spec/v1/statement.md, spec/v1/resource_descriptor.md,
spec/predicates/test-result.md.  The statement names every record by its checksum, so that a record stays attested when
records of many batches are stored in one file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal, overload

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError

from tfdet.base.folders import is_there, walk_files
from tfdet.base.paths import Project
from tfdet.base.strict_json import strict_json
from tfdet.matrix.devices import CPU, is_model
from tfdet.matrix.field_types import format_validation_error
from tfdet.store.records import Digest, Key, Record

STATEMENT: Final = "https://in-toto.io/Statement/v1"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
# Names of subjects: the records, the cases that ran, and what the environment was made of: a lock file, an image, or
# a bundle (an environment packed into one archive).
RECORDS, SUITE, LOCK, IMAGE, BUNDLE = "records", "suite", "lock", "image", "bundle"
_NAMES: Final = (RECORDS, SUITE, LOCK, IMAGE, BUNDLE)
_DIGEST = re.compile("[0-9a-f]{64}")
MAX_BATCH_RECORDS: Final = 50_000  # records that one batch may name, as an envelope is read into memory at once


class _Part(BaseModel):
    """A part of a statement.  Unknown fields are ignored, as in-toto's parsing rules require (spec/v1/README.md)."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class _Sha256(_Part):
    sha256: Digest


class Checksums(Sequence[str]):
    """The checksums of many records, stored in 32 bytes each."""

    def __init__(self, checksums: object) -> None:
        if not isinstance(checksums, list) or not 1 <= len(checksums) <= MAX_BATCH_RECORDS:
            raise ValueError(f"1 to {MAX_BATCH_RECORDS:,} checksums belong there")
        if any(not isinstance(checksum, str) or not _DIGEST.fullmatch(checksum) for checksum in checksums):
            raise ValueError("one of them is not a checksum")
        self._packed = b"".join(map(bytes.fromhex, checksums))

    def __len__(self) -> int:
        return len(self._packed) // 32

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return list(self)[index]

    def __iter__(self) -> Iterator[str]:
        return (packed.hex() for packed in self.packed)

    @property
    def packed(self) -> Iterator[bytes]:
        return map(self.packed_at, range(len(self)))

    def packed_at(self, number: int) -> bytes:
        return self._packed[32 * number : 32 * number + 32]


class SignedBatch(_Part):
    """The records of one environment on one device, by their checksums, in the order of their lines."""

    environment: Key
    device: Key
    checksums: Annotated[Checksums, PlainValidator(Checksums)]


class Subject(_Part):
    name: Annotated[str, Field(max_length=200)]
    digest: _Sha256
    annotations: SignedBatch | None = None


class Configured(_Part):
    name: Annotated[str, Field(max_length=200)]


def _require_no_tests(tests: object) -> object:
    if tests not in (None, []):
        raise ValueError("records name no tests, so these names cannot be verified")
    return tests


_Tests = Annotated[object, AfterValidator(_require_no_tests)]


class Predicate(_Part):
    """The predicate `test-result` (spec/predicates/test-result.md); each of its parts is compared with the records.

    configuration: files of the environment, by name only: the records do not contain what the files held.
    """

    result: Literal["PASSED", "WARNED", "FAILED"]
    configuration: Annotated[list[Configured], Field(max_length=20)] = []
    passed: _Tests = Field(default=None, alias="passedTests")
    warned: _Tests = Field(default=None, alias="warnedTests")
    failed: _Tests = Field(default=None, alias="failedTests")


class Statement(_Part):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    predicate_type: Literal["https://in-toto.io/attestation/test-result/v0.1"] = Field(alias="predicateType")
    subject: list[Subject] = Field(max_length=20)
    predicate: Predicate

    def digest(self, name: str) -> str | None:
        return next((subject.digest.sha256 for subject in self.subject if subject.name == name), None)

    @property
    def batch(self) -> SignedBatch:
        """The batch of records, which `parse_statement` has checked to be present."""
        return next(subject.annotations for subject in self.subject if subject.name == RECORDS and subject.annotations)


def parse_statement(body: bytes) -> Statement:
    """Parse a payload; raise ValueError if it is not a valid statement about records."""
    try:
        statement = Statement.model_validate(strict_json(body))
    except ValidationError as error:
        raise ValueError(f"no statement of records: {format_validation_error(error.errors()[0])}") from None
    except ValueError as error:
        raise ValueError(f"no statement of records: {error}") from None
    _check_subjects(statement)
    _check_configuration(statement)
    if any(checksum == following for checksum, following in pairwise(sorted(statement.batch.checksums.packed))):
        raise ValueError("it names a record twice")
    return statement


def _check_subjects(statement: Statement) -> None:
    names = [subject.name for subject in statement.subject]
    if names.count(RECORDS) != 1 or not any(
        subject.annotations for subject in statement.subject if subject.name == RECORDS
    ):
        raise ValueError("no statement of records: it names no batch of them")
    if SUITE not in names:
        raise ValueError("no statement of records: it names no suite")
    if invalid := [name for name in names if name not in _NAMES or names.count(name) > 1]:
        raise ValueError(f"no statement of records: what is its subject {invalid[0]!r}?")


def _check_configuration(statement: Statement) -> None:
    file = f"{statement.batch.environment}.toml"
    for entry in statement.predicate.configuration:
        if PurePosixPath(entry.name).name != file:
            raise ValueError(f"no statement of these records: configured by {entry.name!r}, which is not their {file}")


def group_into_batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield the records by environment and device, in their order, each once, at most MAX_BATCH_RECORDS per batch."""
    open_batches: dict[tuple[str, str], list[Record]] = {}
    known: set[bytes] = set()
    for record in records:
        checksum = bytes.fromhex(record.checksum)
        if checksum in known:
            continue
        known.add(checksum)
        place = record.environment, record.device.model
        batch = open_batches.setdefault(place, [])
        batch.append(record)
        if len(batch) == MAX_BATCH_RECORDS:
            yield open_batches.pop(place)
    yield from open_batches.values()


def to_statement(project: Project, batch: Sequence[Record]) -> bytes:
    """Return the statement of one batch, as JSON."""
    first, summary = batch[0], BatchSummary.from_lines(record.line().encode("ascii") for record in batch)
    checksums = [record.checksum for record in batch]
    annotations = {"environment": first.environment, "device": first.device.model, "checksums": checksums}
    origin = summary.origin
    if not origin and (lock := lock_digest(project, first.environment, first.device.model)):
        origin = {LOCK: lock}
    subjects: list[dict[str, Any]] = [_subject(RECORDS, summary.digest) | {"annotations": annotations}]
    subjects += [_subject(name, digest) for name, digest in origin.items()]
    subjects.append(_subject(SUITE, summary.suite))
    predicate = {"result": summary.overall_result, "configuration": _configuration(project, first)}
    statement = {"_type": STATEMENT, "subject": subjects, "predicateType": TEST_RESULT, "predicate": predicate}
    return json.dumps(statement, sort_keys=True, separators=(",", ":")).encode("ascii")


class _Device(msgspec.Struct, gc=False):
    model: str


class _Bundle(msgspec.Struct, gc=False):
    manifest: str


class _Stack(msgspec.Struct, gc=False):
    image_digest: str | None
    bundle: _Bundle | None = None


class _RecordFields(msgspec.Struct, gc=False):
    """The fields of a record that a statement depends on."""

    environment: str
    device: _Device
    source: str
    case_hash: str
    observation: str
    started: str
    stack: _Stack


_decode = msgspec.json.Decoder(_RecordFields).decode


@dataclass
class BatchSummary:
    """The summary of a batch's records, with which a statement is compared."""

    partitions: set[tuple[str, str]] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    _lines: Any = field(default_factory=hashlib.sha256, repr=False)
    _cases: set[str] = field(default_factory=set, repr=False)
    _observed: set[str] = field(default_factory=set, repr=False)
    _images: set[str] = field(default_factory=set, repr=False)
    _bundles: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def from_lines(cls, lines: Iterable[bytes]) -> BatchSummary:
        summary = cls()
        for line in lines:
            summary.add(line)
        return summary

    def add(self, line: bytes) -> None:
        """Add a line, in the order of the batch.  It must be the line of a valid record."""
        record = _decode(line)
        self._lines.update(line)
        self.partitions.add((record.device.model, record.environment))
        self.days.add(record.started[:10])
        self._cases.add(f"{record.source} {record.case_hash}\n")
        self._observed.add(record.observation)
        self._images.add((record.stack.image_digest or "").rpartition(":")[2])
        if record.stack.bundle:
            self._bundles.add(record.stack.bundle.manifest)

    @property
    def digest(self) -> str:
        """The SHA-256 of the lines, as sha256sum prints it for a file of this batch."""
        return str(self._lines.hexdigest())

    @property
    def suite(self) -> str:
        """The SHA-256 of the cases that ran: sorted lines `SOURCE HASH-OF-THE-CASE`."""
        return hashlib.sha256("".join(sorted(self._cases)).encode("ascii")).hexdigest()

    @property
    def origin(self) -> dict[str, str]:
        """{IMAGE or BUNDLE: its digest}, if all records name the same one; records never name a lock file."""
        digests = {IMAGE: self._images, BUNDLE: self._bundles}
        single = {name: next(iter(values)) for name, values in digests.items() if len(values) == 1}
        return {name: digest for name, digest in single.items() if _DIGEST.fullmatch(digest)}

    @property
    def overall_result(self) -> str:
        """FAILED if a case crashed or timed out, else WARNED if runs differed, else PASSED."""
        if self._observed & {"crashed", "timed-out"}:
            return "FAILED"
        return "WARNED" if "differs" in self._observed else "PASSED"


def lock_digest(project: Project, environment: str, model: str) -> str | None:
    """Return the SHA-256 of an environment's current lock file; None if it has none, as NVIDIA's images do not."""
    lock = project.lock(environment, "cpu" if is_model(model, CPU) else "gpu")
    return hashlib.sha256(lock.read_bytes()).hexdigest() if is_there(lock) else None


def _subject(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def _configuration(project: Project, record: Record) -> list[dict[str, Any]]:
    """Return the environment's file, with its current digest, as the configuration of a statement."""
    paths = sorted(walk_files(project.matrix / "environments", f"{record.environment}.toml"))
    return [
        _subject(str(path.relative_to(project.root)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths
    ]
