"""A batch of records as an in-toto Statement v1 with the predicate `test-result`.

https://github.com/in-toto/attestation: spec/v1/statement.md, spec/v1/resource_descriptor.md,
spec/predicates/test-result.md.  The statement names every record by its checksum, so that each stays vouched for when
records of many batches lie in one file of the store.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tfdet.base.paths import Project
from tfdet.base.strict_json import strict_json
from tfdet.matrix.devices import CPU, is_model
from tfdet.matrix.fields import reason
from tfdet.store.records import Digest, Key, Record

STATEMENT: Final = "https://in-toto.io/Statement/v1"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
RECORDS, SUITE, LOCK, IMAGE, BUNDLE = "records", "suite", "lock", "image", "bundle"
_NAMES: Final = (RECORDS, SUITE, LOCK, IMAGE, BUNDLE)
_DIGEST = re.compile("[0-9a-f]{64}")
MOST: Final = 1_000_000  # records that one batch may name


class _Part(BaseModel):
    """Fields that are not known are ignored: in-toto's parsing rules, spec/v1/README.md."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class _Sha256(_Part):
    sha256: Digest


class Batch(_Part):
    """Of one environment on one device: checksums of its records, in the order of its lines."""

    environment: Key
    device: Key
    checksums: list[Digest] = Field(min_length=1, max_length=MOST)


class Subject(_Part):
    name: Annotated[str, Field(max_length=200)]
    digest: _Sha256
    annotations: Batch | None = None


class Predicate(_Part):
    result: Literal["PASSED", "WARNED", "FAILED"]


class Statement(_Part):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    predicate_type: Literal["https://in-toto.io/attestation/test-result/v0.1"] = Field(alias="predicateType")
    subject: list[Subject] = Field(max_length=20)
    predicate: Predicate

    def digest(self, name: str) -> str | None:
        return next((one.digest.sha256 for one in self.subject if one.name == name), None)

    @property
    def batch(self) -> Batch:
        """`read` has seen that it is there."""
        return next(one.annotations for one in self.subject if one.name == RECORDS and one.annotations)


def read(body: bytes) -> Statement:
    """ValueError says why these bytes state nothing of records."""
    try:
        statement = Statement.model_validate(strict_json(body))
    except ValidationError as error:
        raise ValueError(f"no statement of records: {reason(error.errors()[0])}") from None
    except ValueError as error:
        raise ValueError(f"no statement of records: {error}") from None
    _check_subjects(statement)
    if len(set(statement.batch.checksums)) < len(statement.batch.checksums):
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


def batches(records: Iterable[Record]) -> list[list[Record]]:
    """By environment and device, each in the order of its lines, each record once."""
    found: dict[tuple[str, str], dict[str, Record]] = defaultdict(dict)
    for record in records:
        found[record.environment, record.device.model].setdefault(record.checksum, record)
    return [list(some.values()) for some in found.values()]


def written(project: Project, batch: Sequence[Record]) -> bytes:
    """The statement of one batch."""
    first = batch[0]
    named = {"environment": first.environment, "device": first.device.model, "checksums": [r.checksum for r in batch]}
    subjects: list[dict[str, Any]] = [_subject(RECORDS, batch_digest(batch)) | {"annotations": named}]
    subjects += [_subject(name, digest) for name, digest in stack_digests(project, batch).items()]
    subjects.append(_subject(SUITE, suite_digest(batch)))
    predicate = {"result": result(batch), "configuration": _configuration(project, first)}
    whole = {"_type": STATEMENT, "subject": subjects, "predicateType": TEST_RESULT, "predicate": predicate}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode("ascii")


def batch_digest(batch: Iterable[Record]) -> str:
    """Of the lines: what sha256sum says of a file that holds this batch alone."""
    digest = hashlib.sha256()
    for record in batch:
        digest.update(record.line().encode("ascii"))
    return digest.hexdigest()


def suite_digest(batch: Iterable[Record]) -> str:
    """Of the cases that ran: a line `SOURCE HASH-OF-THE-CASE` each, sorted.  Whoever has the records can tell it."""
    cases = sorted({f"{record.source} {record.case_hash}\n" for record in batch})
    return hashlib.sha256("".join(cases).encode("ascii")).hexdigest()


def stack_digests(project: Project, batch: Sequence[Record]) -> Mapping[str, str]:
    """What the environment was made of: its image, its bundle, or its lock file as it is now."""
    first = batch[0]
    found = dict(told_digests(batch))
    if not found and (lock := lock_digest(project, first.environment, first.device.model)):
        found[LOCK] = lock
    return found


def told_digests(batch: Sequence[Record]) -> Mapping[str, str]:
    """Its image or its bundle, where the records tell it.  A lock file they do not."""
    images = {(record.stack.image_digest or "").rpartition(":")[2] for record in batch}
    bundles = {record.stack.bundle.manifest for record in batch if record.stack.bundle}
    named = {IMAGE: images, BUNDLE: bundles}
    found = {name: some.copy().pop() for name, some in named.items() if len(some) == 1}
    return {name: digest for name, digest in found.items() if _DIGEST.fullmatch(digest)}


def lock_digest(project: Project, environment: str, model: str) -> str | None:
    """Of its lock file as it is now; None where it has none, as NVIDIA's images."""
    lock = project.lock(environment, "cpu" if is_model(model, CPU) else "gpu")
    return hashlib.sha256(lock.read_bytes()).hexdigest() if lock.is_file() else None


def _subject(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def result(batch: Iterable[Record]) -> str:
    """FAILED: a run did not come to its end; WARNED: runs differed.  The records say which."""
    observed = {record.observation for record in batch}
    if observed & {"crashed", "timed-out"}:
        return "FAILED"
    return "WARNED" if "differs" in observed else "PASSED"


def _configuration(project: Project, record: Record) -> list[dict[str, Any]]:
    """What was to be brought up: the environment's file, as it is now."""
    found = sorted((project.matrix / "environments").rglob(f"{record.environment}.toml"))
    return [
        _subject(str(path.relative_to(project.root)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in found
    ]
