"""A batch of records as an in-toto Statement v1 with the predicate `test-result`.

https://github.com/in-toto/attestation: spec/v1/statement.md, spec/v1/resource_descriptor.md,
spec/predicates/test-result.md.  The statement names every record by its checksum, so that each stays vouched for when
records of many batches lie in one file of the store.
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

from tfdet.base.folders import is_there, walked
from tfdet.base.paths import Project
from tfdet.base.strict_json import strict_json
from tfdet.matrix.devices import CPU, is_model
from tfdet.matrix.field_types import format_validation_error
from tfdet.store.records import Digest, Key, Record

STATEMENT: Final = "https://in-toto.io/Statement/v1"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
RECORDS, SUITE, LOCK, IMAGE, BUNDLE = "records", "suite", "lock", "image", "bundle"
_NAMES: Final = (RECORDS, SUITE, LOCK, IMAGE, BUNDLE)
_DIGEST = re.compile("[0-9a-f]{64}")
MAX_BATCH_RECORDS: Final = 50_000  # records that one batch may name: an envelope is read whole


class _Part(BaseModel):
    """Fields that are not known are ignored: in-toto's parsing rules, spec/v1/README.md."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class _Sha256(_Part):
    sha256: Digest


class Checksums(Sequence[str]):
    """Of many records, in 32 bytes each."""

    def __init__(self, given: object) -> None:
        if not isinstance(given, list) or not 1 <= len(given) <= MAX_BATCH_RECORDS:
            raise ValueError(f"1 to {MAX_BATCH_RECORDS:,} checksums belong there")
        if any(not isinstance(one, str) or not _DIGEST.fullmatch(one) for one in given):
            raise ValueError("one of them is not a checksum")
        self._packed = b"".join(map(bytes.fromhex, given))

    def __len__(self) -> int:
        return len(self._packed) // 32

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        return list(self)[at]

    def __iter__(self) -> Iterator[str]:
        return (one.hex() for one in self.packed)

    @property
    def packed(self) -> Iterator[bytes]:
        return map(self.packed_at, range(len(self)))

    def packed_at(self, number: int) -> bytes:
        return self._packed[32 * number : 32 * number + 32]


class SignedBatch(_Part):
    """Of one environment on one device: checksums of its records, in the order of its lines."""

    environment: Key
    device: Key
    checksums: Annotated[Checksums, PlainValidator(Checksums)]


class Subject(_Part):
    name: Annotated[str, Field(max_length=200)]
    digest: _Sha256
    annotations: SignedBatch | None = None


class Configured(_Part):
    name: Annotated[str, Field(max_length=200)]


def _none(tests: object) -> object:
    if tests not in (None, []):
        raise ValueError("records name no tests, so these names cannot be verified")
    return tests


_Tests = Annotated[object, AfterValidator(_none)]


class Predicate(_Part):
    """All that a test result may say (spec/predicates/test-result.md), for each part is compared with the records.

    configuration: files of the environment.  Of what they held when the records were made these tell nothing.
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
        return next((one.digest.sha256 for one in self.subject if one.name == name), None)

    @property
    def batch(self) -> SignedBatch:
        """`read` has seen that it is there."""
        return next(one.annotations for one in self.subject if one.name == RECORDS and one.annotations)


def parse_statement(body: bytes) -> Statement:
    """ValueError says why these bytes state nothing of records."""
    try:
        statement = Statement.model_validate(strict_json(body))
    except ValidationError as error:
        raise ValueError(f"no statement of records: {format_validation_error(error.errors()[0])}") from None
    except ValueError as error:
        raise ValueError(f"no statement of records: {error}") from None
    _check_subjects(statement)
    _check_configuration(statement)
    if any(one == other for one, other in pairwise(sorted(statement.batch.checksums.packed))):
        raise ValueError("it names a record twice")
    return statement


def _check_subjects(statement: Statement) -> None:
    names = [one.name for one in statement.subject]
    if names.count(RECORDS) != 1 or not any(one.annotations for one in statement.subject if one.name == RECORDS):
        raise ValueError("no statement of records: it names no batch of them")
    if SUITE not in names:
        raise ValueError("no statement of records: it names no suite")
    if odd := [name for name in names if name not in _NAMES or names.count(name) > 1]:
        raise ValueError(f"no statement of records: what is its subject {odd[0]!r}?")


def _check_configuration(statement: Statement) -> None:
    file = f"{statement.batch.environment}.toml"
    for one in statement.predicate.configuration:
        if PurePosixPath(one.name).name != file:
            raise ValueError(f"no statement of these records: configured by {one.name!r}, which is not their {file}")


def group_into_batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """By environment and device, each in the order of its lines and of a size that may be signed, each record once."""
    open_batches: dict[tuple[str, str], list[Record]] = {}
    seen: set[bytes] = set()
    for record in records:
        checksum = bytes.fromhex(record.checksum)
        if checksum in seen:
            continue
        seen.add(checksum)
        place = record.environment, record.device.model
        batch = open_batches.setdefault(place, [])
        batch.append(record)
        if len(batch) == MAX_BATCH_RECORDS:
            yield open_batches.pop(place)
    yield from open_batches.values()


def to_statement(project: Project, batch: Sequence[Record]) -> bytes:
    """The statement of one batch."""
    first, told = batch[0], BatchSummary.from_lines(record.line().encode("ascii") for record in batch)
    named = {"environment": first.environment, "device": first.device.model, "checksums": [r.checksum for r in batch]}
    made_of = told.made_of
    if not made_of and (lock := lock_digest(project, first.environment, first.device.model)):
        made_of = {LOCK: lock}
    subjects: list[dict[str, Any]] = [_subject(RECORDS, told.digest) | {"annotations": named}]
    subjects += [_subject(name, digest) for name, digest in made_of.items()]
    subjects.append(_subject(SUITE, told.suite))
    predicate = {"result": told.overall_result, "configuration": _configuration(project, first)}
    whole = {"_type": STATEMENT, "subject": subjects, "predicateType": TEST_RESULT, "predicate": predicate}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")


class _Device(msgspec.Struct, gc=False):
    model: str


class _Bundle(msgspec.Struct, gc=False):
    manifest: str


class _Stack(msgspec.Struct, gc=False):
    image_digest: str | None
    bundle: _Bundle | None = None


class _RecordFields(msgspec.Struct, gc=False):
    """Of a record what a statement speaks of."""

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
    """What the records of a batch say together: the other side of each comparison with a statement."""

    partitions: set[tuple[str, str]] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    _lines: Any = field(default_factory=hashlib.sha256, repr=False)
    _cases: set[str] = field(default_factory=set, repr=False)
    _observed: set[str] = field(default_factory=set, repr=False)
    _images: set[str] = field(default_factory=set, repr=False)
    _bundles: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def from_lines(cls, lines: Iterable[bytes]) -> BatchSummary:
        found = cls()
        for line in lines:
            found.add(line)
        return found

    def add(self, line: bytes) -> None:
        """In the order of the batch.  The line is a record's that was read before."""
        one = _decode(line)
        self._lines.update(line)
        self.partitions.add((one.device.model, one.environment))
        self.days.add(one.started[:10])
        self._cases.add(f"{one.source} {one.case_hash}\n")
        self._observed.add(one.observation)
        self._images.add((one.stack.image_digest or "").rpartition(":")[2])
        if one.stack.bundle:
            self._bundles.add(one.stack.bundle.manifest)

    @property
    def digest(self) -> str:
        """Of the lines: what sha256sum says of a file that holds this batch alone."""
        return str(self._lines.hexdigest())

    @property
    def suite(self) -> str:
        """Of the cases that ran: a line `SOURCE HASH-OF-THE-CASE` each, sorted."""
        return hashlib.sha256("".join(sorted(self._cases)).encode("ascii")).hexdigest()

    @property
    def made_of(self) -> dict[str, str]:
        """Its image or its bundle, where the records tell it.  A lock file they do not."""
        named = {IMAGE: self._images, BUNDLE: self._bundles}
        found = {name: next(iter(some)) for name, some in named.items() if len(some) == 1}
        return {name: digest for name, digest in found.items() if _DIGEST.fullmatch(digest)}

    @property
    def overall_result(self) -> str:
        """FAILED: a run did not come to its end; WARNED: runs differed.  The records say which."""
        if self._observed & {"crashed", "timed-out"}:
            return "FAILED"
        return "WARNED" if "differs" in self._observed else "PASSED"


def lock_digest(project: Project, environment: str, model: str) -> str | None:
    """Of its lock file as it is now; None where it has none, as NVIDIA's images."""
    lock = project.lock(environment, "cpu" if is_model(model, CPU) else "gpu")
    return hashlib.sha256(lock.read_bytes()).hexdigest() if is_there(lock) else None


def _subject(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def _configuration(project: Project, record: Record) -> list[dict[str, Any]]:
    """What was to be brought up: the environment's file, as it is now."""
    found = sorted(walked(project.matrix / "environments", f"{record.environment}.toml"))
    return [
        _subject(str(path.relative_to(project.root)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in found
    ]
