"""Read the signed in-toto attestations of matrix/signatures/<device>/<environment>.intoto.jsonl, and check them.

Each is compared with the records that it names.  A record is trusted, unsigned, or not counted: all keys that signed it
are revoked, or not trusted for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from tfdet.base.folders import in_folders, is_there
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_text_lines
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Environment
from tfdet.store import dsse, in_toto, keyless
from tfdet.store.record_lookup import ChecksumIndex, FindRecord, RecordFiles, find_nothing
from tfdet.store.records import Record

SUFFIX: Final = ".intoto.jsonl"  # spec/v1/bundle.md of in-toto
NO_SIGNER: Final = ""
OTHER_LOCK_TEXT: Final = "built from a different lock file"


@dataclass(frozen=True)
class Attestation:
    """An envelope that a key of matrix/keys signed.  untrusted_reason: why that key is not trusted for it, or empty.

    other_lock: the lock file that it names is not the current one; it may be an earlier version.
    """

    line: str
    name: str
    key: PublicKey
    batch: in_toto.SignedBatch
    statement: in_toto.Statement
    untrusted_reason: str
    other_lock: bool = False

    @property
    def partition(self) -> tuple[str, str]:
        return self.batch.device, self.batch.environment


@dataclass(frozen=True)
class AttestationIndex:
    """The valid attestations of one device and environment; faults: error messages of the invalid envelopes."""

    attestations: Sequence[Attestation] = ()
    faults: Sequence[str] = ()

    @cached_property
    def _places(self) -> ChecksumIndex:
        """Which attestation names a record, and at which place: number and place in one integer, 32 bits each."""
        return ChecksumIndex(
            (checksum, at << 32 | number)
            for number, attestation in enumerate(self.attestations)
            for at, checksum in enumerate(attestation.batch.checksums.packed)
        )

    def trusted_signer(self, checksum: str, started: str) -> str | None:
        """The first trusted signer of a record; NO_SIGNER if it is unsigned, None if no signer is trusted."""
        if not (attestations := self._attestations_of(checksum)):
            return NO_SIGNER
        attestation = _first_trusted(attestations, started)
        return attestation.key.signer if attestation else None

    def is_signed(self, checksum: str) -> bool:
        """Does any attestation name the record, trusted or not?"""
        return bool(self._attestations_of(checksum))

    def _attestations_of(self, checksum: str) -> tuple[Attestation, ...]:
        if not self.attestations:
            return ()
        named = bytes.fromhex(checksum)
        found = ((self.attestations[place & 0xFFFFFFFF], place >> 32) for place in self._places(named))
        return tuple(attestation for attestation, at in found if attestation.batch.checksums.packed_at(at) == named)

    def describe(self, checksum: str, started: str) -> str:
        """The record's signature status in one phrase."""
        if not (attestations := self._attestations_of(checksum)):
            return "unsigned"
        if believed := _first_trusted(attestations, started):
            return f"signed by {believed.key.signer}{f', {OTHER_LOCK_TEXT}' if believed.other_lock else ''}"
        first = attestations[0]
        reason = first.untrusted_reason or f"not trusted for records of {started[:10]}"
        return f"not counted: {first.name} is {reason}"


def _first_trusted(attestations: Iterable[Attestation], started: str) -> Attestation | None:
    return next(
        (
            attestation
            for attestation in attestations
            if not attestation.untrusted_reason and attestation.key.is_valid_at(started)
        ),
        None,
    )


@dataclass(frozen=True)
class AttestationStore:
    """Envelopes of the store, verified lazily.

    folders: of the repository and of the user's own store.  extra_envelopes: from bundles beside files outside the
    store; find_record: looks up the records of those files.  project: for its lock files; None: no lock file is known.
    """

    keys: Keyring
    environments: Mapping[str, Environment]
    folders: Sequence[Path] = ()
    extra_envelopes: Sequence[str] = ()
    project: Project | None = None
    find_record: FindRecord = find_nothing

    @classmethod
    def open(
        cls, project: Project, matrix: Matrix, more: Iterable[str] = (), found: FindRecord = find_nothing
    ) -> AttestationStore:
        folders = dict.fromkeys([folder_of(project.evidence), folder_of(project.user_evidence)])
        return cls(matrix.keys, matrix.environments, tuple(folders), tuple(more), project, found)

    def index_of(self, device: str, environment: str) -> AttestationIndex:
        """Verify every envelope of this place against its records; newer records may have replaced some since."""
        found: list[Attestation] = []
        faults = []
        paths = [folder.with_name("evidence") / device / f"{environment}.jsonl" for folder in self.folders]
        with RecordFiles(paths) as stored:
            for where, line in self._lines(device, environment):
                try:
                    found += self._verify_in_partition(line, (device, environment), where, stored)
                except ValueError as error:
                    faults += [f"{where}: {error}"] if where else []
        return AttestationIndex(found, faults)

    def _verify_in_partition(
        self, line: str, place: tuple[str, str], where: str, stored: FindRecord
    ) -> list[Attestation]:
        """The attestations of one envelope; ValueError if its signature or its content is invalid."""
        attestations = self.verify(line)
        first = attestations[0]
        if first.partition != place:
            if where:
                raise ValueError(f"of {first.batch.environment} on {first.batch.device}")
            return []
        check_against_records(self, first, stored if where else self._anywhere(stored), whole=not where)
        return attestations

    def _anywhere(self, stored: FindRecord) -> FindRecord:
        return lambda checksum: self.find_record(checksum) or stored(checksum)

    def _lines(self, device: str, environment: str) -> Iterator[tuple[str, str]]:
        """(file:number, line); the first is empty for extra envelopes."""
        for folder in self.folders:
            path = folder / device / f"{environment}{SUFFIX}"
            yield from ((f"{path}:{number}", line) for number, line in read_bundle(path))
        yield from (("", line) for line in self.extra_envelopes)

    def has_envelopes(self, device: str, environment: str) -> bool:
        """Do envelopes exist for this place, valid or not?"""
        return next(self._lines(device, environment), None) is not None

    def verify(self, line: str) -> list[Attestation]:
        """One attestation for each verified signature, in their order; ValueError if none can be verified."""
        if keyless.is_bundle(line):
            name, key, body = keyless.verify_bundle(line, self.keys)
            signers = [dsse.VerifiedSignature(name, key, line)]
        else:
            signers, body = dsse.verify_envelope(line, self.keys)
        said = in_toto.parse_statement(body)
        return [self._attestation(one, said) for one in signers]

    def _attestation(self, signed: dsse.VerifiedSignature, said: in_toto.Statement) -> Attestation:
        name, key, line = signed
        batch = said.batch
        refused = key.untrusted_reason(batch.device, self.environments.get(batch.environment))
        return Attestation(line, name, key, batch, said, refused, self._is_other_lock(said))

    def _is_other_lock(self, said: in_toto.Statement) -> bool:
        digest, batch = said.digest(in_toto.LOCK), said.batch
        if digest is None or self.project is None:
            return False
        return digest != in_toto.lock_digest(self.project, batch.environment, batch.device)

    def find_faults(self) -> list[str]:
        """Error messages of all invalid or misplaced envelopes of the store."""
        paths = [path for folder in self.folders for path in in_folders(folder, f"*{SUFFIX}")]
        places = dict.fromkeys((path.parent.name, path.name.removesuffix(SUFFIX)) for path in paths)
        return [fault for place in places for fault in self.index_of(*place).faults]


def folder_of(evidence: Path) -> Path:
    """Beside the evidence, so that the evidence folder holds only records."""
    return evidence.with_name("signatures")


def bundle_path(path: Path) -> Path:
    """Where the envelopes of a file of records lie: spec/v1/bundle.md of in-toto."""
    return path.with_name(path.name + SUFFIX)


def read_bundle(path: Path) -> Iterator[tuple[int, str]]:
    """(the number of its line, an envelope), one after another; none where there is no file."""
    if not is_there(path):
        return
    for number, line in enumerate(read_text_lines(path, "No envelopes can be read there."), 1):
        if line.strip():
            yield number, line


def verify_for_records(signatures: AttestationStore, records: Iterable[Record] | FindRecord, line: str) -> Attestation:
    """Verify an envelope that came with records; ValueError if it is untrusted, or of other records."""
    find = records if callable(records) else {one.checksum: one.line().encode("ascii") for one in records}.get
    attestations = signatures.verify(line)
    told = check_against_records(signatures, attestations[0], find, whole=True)
    days = sorted(told.days)
    attestation = max(
        attestations,
        key=lambda attestation: (not attestation.untrusted_reason, all(map(attestation.key.is_valid_at, days))),
    )
    if attestation.untrusted_reason:
        raise ValueError(f"the key {attestation.name} is {attestation.untrusted_reason}")
    if outside := next((day for day in days if not attestation.key.is_valid_at(day)), None):
        raise ValueError(f"the key {attestation.name} is not trusted for records of {outside}")
    return attestation


def check_against_records(
    signatures: AttestationStore, attestation: Attestation, find: FindRecord, *, whole: bool
) -> in_toto.BatchSummary:
    """A summary of the records that it names; ValueError where it contradicts them.

    whole: every record has to be there.  Else newer ones of the same case may have replaced some; the others decide.
    """
    told, missing = in_toto.BatchSummary(), 0
    for checksum in attestation.batch.checksums:
        if (line := find(checksum)) is None:
            missing += 1
        else:
            told.add(line)
    said, name = attestation.statement, attestation.name
    if missing and whole:
        raise ValueError(
            f"{missing} of the {len(attestation.batch.checksums)} records that {name} signed are not there"
        )
    if not told.partitions:
        return told
    if told.partitions - {attestation.partition}:
        raise ValueError(
            f"{name} signed other records as those of {attestation.batch.environment} on {attestation.batch.device}"
        )
    if not missing and said.digest(in_toto.RECORDS) != told.digest:
        raise ValueError(f"the records are not, byte for byte, what {name} signed")
    if not missing and said.digest(in_toto.SUITE) != told.suite:
        raise ValueError(f"{name} signed them as records of another suite")
    if told.overall_result not in _UP_TO[said.predicate.result] or (
        not missing and told.overall_result != said.predicate.result
    ):
        raise ValueError(f"{name} signed them as {said.predicate.result}, and that they are not")
    _check_stack(signatures, attestation, told, missing > 0)
    return told


_UP_TO: Final = {"PASSED": ["PASSED"], "WARNED": ["PASSED", "WARNED"], "FAILED": ["PASSED", "WARNED", "FAILED"]}


def _check_stack(
    signatures: AttestationStore, attestation: Attestation, told: in_toto.BatchSummary, partly: bool
) -> None:
    """ValueError where the image or bundle that it names is not that of its records, or where it names nothing.

    Records do not name a lock file.  An unknown one may be an earlier version: it is reported, not refused.
    partly: some records are missing.  A batch of several images names none; what is left may be of one image.
    """
    made_of = told.made_of
    names = (in_toto.IMAGE, in_toto.BUNDLE, in_toto.LOCK)
    said = {name: digest for name in names if (digest := attestation.statement.digest(name))}
    if partly and not said.keys() - {in_toto.LOCK}:
        made_of = {}
    if said != made_of if made_of else said.keys() - {in_toto.LOCK}:
        raise ValueError(
            f"{attestation.name} signed them as made of {_stack(said)}, and they tell of {_stack(made_of)}"
        )
    if not said and not _has_no_lock(signatures, attestation.batch):
        raise ValueError(f"{attestation.name} does not say what their environment was made of")


def _has_no_lock(signatures: AttestationStore, batch: in_toto.SignedBatch) -> bool:
    """True for NVIDIA's images: only the records can name them."""
    project = signatures.project
    return project is not None and in_toto.lock_digest(project, batch.environment, batch.device) is None


def _stack(digests: Mapping[str, str]) -> str:
    return " and ".join(f"the {name} {digest[:12]}" for name, digest in digests.items()) or "no image and no bundle"


def unverified_signers(told: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(checksum, key hint) without verification: only to group records by signer."""
    for line in told:
        try:
            hint, body = (keyless if keyless.is_bundle(line) else dsse).parse_unverified(line)
            batch = in_toto.parse_statement(body).batch
        except ValueError:
            continue
        yield from ((checksum, hint) for checksum in batch.checksums)
