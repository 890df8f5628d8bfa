"""Read the signed in-toto attestations of matrix/signatures/<device>/<environment>.intoto.jsonl, and check them.

Each is compared with the records that it names.  A record is trusted, unsigned, or not counted: all keys that signed it
are revoked, or not trusted for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tfdet.base.folders import is_there, list_in_subfolders
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
    """An envelope that a key of matrix/keys signed.

    line: the envelope with that key's signature only; empty in an AttestationIndex, as envelopes are large.
    name: of the key's file in matrix/keys.
    untrusted_reason: why that key is not trusted for its records; empty if it is trusted.
    other_lock: whether the lock file that it names is not the current one, but perhaps an earlier version.
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
        """Maps a record's checksum to its places: its index in a batch << 32 | the number of that attestation."""
        return ChecksumIndex(
            (checksum, index << 32 | number)
            for number, attestation in enumerate(self.attestations)
            for index, checksum in enumerate(attestation.batch.checksums.packed)
        )

    def trusted_signer(self, checksum: str, started: str) -> str | None:
        """Return the first trusted signer of a record; NO_SIGNER if it is unsigned, None if no signer is trusted."""
        if not (attestations := self._attestations_of(checksum)):
            return NO_SIGNER
        attestation = _first_trusted(attestations, started)
        return attestation.key.signer if attestation else None

    def is_signed(self, checksum: str) -> bool:
        """Return whether any attestation names the record, trusted or not."""
        return bool(self._attestations_of(checksum))

    def _attestations_of(self, checksum: str) -> tuple[Attestation, ...]:
        if not self.attestations:
            return ()
        packed = bytes.fromhex(checksum)
        candidates = ((self.attestations[place & 0xFFFFFFFF], place >> 32) for place in self._places(packed))
        return tuple(item for item, index in candidates if item.batch.checksums.packed_at(index) == packed)

    def describe(self, checksum: str, started: str) -> str:
        """Return the record's signature status in one phrase."""
        if not (attestations := self._attestations_of(checksum)):
            return "unsigned"
        if trusted := _first_trusted(attestations, started):
            return f"signed by {trusted.key.signer}{f', {OTHER_LOCK_TEXT}' if trusted.other_lock else ''}"
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

    folders: the folders of envelopes, of the repository and of the user's own store.
    extra_envelopes: envelopes from bundles beside files outside the store.
    find_record: finds the records of those files.
    project: the project whose lock files are compared; None if no lock file is known.
    """

    keys: Keyring
    environments: Mapping[str, Environment]
    folders: Sequence[Path] = ()
    extra_envelopes: Sequence[str] = ()
    project: Project | None = None
    find_record: FindRecord = find_nothing

    @classmethod
    def open(
        cls,
        project: Project,
        matrix: Matrix,
        extra_envelopes: Iterable[str] = (),
        find_record: FindRecord = find_nothing,
    ) -> AttestationStore:
        folders = dict.fromkeys([folder_of(project.evidence), folder_of(project.user_evidence)])
        return cls(matrix.keys, matrix.environments, tuple(folders), tuple(extra_envelopes), project, find_record)

    def index_of(self, device: str, environment: str) -> AttestationIndex:
        """Verify all envelopes of a device and environment; some of their records may have been replaced since."""
        attestations: list[Attestation] = []
        faults, verified = [], set()  # digests of verified envelopes, as an extra one may also be in the store
        paths = [folder.with_name("evidence") / device / f"{environment}.jsonl" for folder in self.folders]
        with RecordFiles(paths) as stored:
            for position, line in self._lines(device, environment):
                digest = hashlib.sha256(line.encode()).digest()
                if digest in verified:
                    continue
                try:
                    found = self._verify_in_partition(line, (device, environment), position, stored)
                except ValueError as error:
                    faults += [f"{position}: {error}"] if position else []
                    continue
                attestations += (replace(attestation, line="") for attestation in found)
                verified.add(digest)
        return AttestationIndex(attestations, faults)

    def _verify_in_partition(
        self, line: str, place: tuple[str, str], position: str, stored: FindRecord
    ) -> list[Attestation]:
        """Return the attestations of one envelope; raise ValueError if its signature or its content is invalid.

        place: its expected (device, environment).  position: its file and line; empty for an extra envelope.
        """
        attestations = self.verify(line)
        first = attestations[0]
        if first.partition != place:
            if position:
                raise ValueError(f"of {first.batch.environment} on {first.batch.device}")
            return []
        find = stored if position else self._find_anywhere(stored)
        check_against_records(self, first, find, require_all=not position)
        return attestations

    def _find_anywhere(self, stored: FindRecord) -> FindRecord:
        """Return a function that finds a record in the extra files, or else in the store."""
        return lambda checksum: self.find_record(checksum) or stored(checksum)

    def _lines(self, device: str, environment: str) -> Iterator[tuple[str, str]]:
        """Yield (file:number, line) of each envelope; the first part is empty for extra envelopes."""
        for folder in self.folders:
            path = folder / device / f"{environment}{SUFFIX}"
            yield from ((f"{path}:{number}", line) for number, line in read_bundle(path))
        yield from (("", line) for line in self.extra_envelopes)

    def has_envelopes(self, device: str, environment: str) -> bool:
        """Return whether there are envelopes for a device and environment, valid or not."""
        return next(self._lines(device, environment), None) is not None

    def verify(self, line: str) -> list[Attestation]:
        """Return an attestation for each verified signature, in their order; raise ValueError if there is none."""
        if keyless.is_sigstore_bundle(line):  # a sigstore bundle, which has a certificate in place of a key
            name, key, payload = keyless.verify_sigstore_bundle(line, self.keys)
            signers = [dsse.VerifiedSignature(name, key, line)]
        else:
            signers, payload = dsse.verify_envelope(line, self.keys)
        statement = in_toto.parse_statement(payload)
        return [self._attestation(signature, statement) for signature in signers]

    def _attestation(self, signature: dsse.VerifiedSignature, statement: in_toto.Statement) -> Attestation:
        name, key, line = signature
        batch = statement.batch
        untrusted_reason = key.untrusted_reason(batch.device, self.environments.get(batch.environment))
        return Attestation(line, name, key, batch, statement, untrusted_reason, self._is_other_lock(statement))

    def _is_other_lock(self, statement: in_toto.Statement) -> bool:
        digest, batch = statement.digest(in_toto.LOCK), statement.batch
        if digest is None or self.project is None:
            return False
        return digest != in_toto.lock_digest(self.project, batch.environment, batch.device)

    def find_faults(self) -> list[str]:
        """Return the error messages of all invalid or misplaced envelopes of the store."""
        paths = [path for folder in self.folders for path in list_in_subfolders(folder, f"*{SUFFIX}")]
        places = dict.fromkeys((path.parent.name, path.name.removesuffix(SUFFIX)) for path in paths)
        return [fault for place in places for fault in self.index_of(*place).faults]


def folder_of(evidence: Path) -> Path:
    """Return the folder of envelopes, which is beside that of the evidence."""
    return evidence.with_name("signatures")


def bundle_path(path: Path) -> Path:
    """Return the path of the envelopes of a file of records (spec/v1/bundle.md of in-toto)."""
    return path.with_name(path.name + SUFFIX)


def read_bundle(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, envelope) of a bundle; nothing if the file does not exist."""
    if not is_there(path):
        return
    for number, line in enumerate(read_text_lines(path, "No envelopes can be read there."), 1):
        if line.strip():
            yield number, line


def verify_for_records(signatures: AttestationStore, records: Iterable[Record] | FindRecord, line: str) -> Attestation:
    """Verify an envelope that came with records; raise ValueError if it is untrusted, or names other records."""
    find = records if callable(records) else {record.checksum: record.line().encode("ascii") for record in records}.get
    attestations = signatures.verify(line)
    summary = check_against_records(signatures, attestations[0], find, require_all=True)
    days = sorted(summary.days)
    attestation = max(
        attestations,
        key=lambda attestation: (not attestation.untrusted_reason, all(map(attestation.key.is_valid_at, days))),
    )
    if attestation.untrusted_reason:
        raise ValueError(f"the key {attestation.name} is {attestation.untrusted_reason}")
    if invalid_day := next((day for day in days if not attestation.key.is_valid_at(day)), None):
        raise ValueError(f"the key {attestation.name} is not trusted for records of {invalid_day}")
    return attestation


def check_against_records(
    signatures: AttestationStore, attestation: Attestation, find: FindRecord, *, require_all: bool
) -> in_toto.BatchSummary:
    """Compare an attestation with the records that it names; return their summary.

    require_all: whether every record must be found.  Otherwise only those that are found are compared.

    Raises:
        ValueError: the attestation contradicts its records.
    """
    summary, missing = in_toto.BatchSummary(), 0
    for checksum in attestation.batch.checksums:
        if (line := find(checksum)) is None:
            missing += 1
        else:
            summary.add(line)
    statement, name = attestation.statement, attestation.name
    if missing and require_all:
        raise ValueError(
            f"{missing} of the {len(attestation.batch.checksums)} records that {name} signed are not there"
        )
    if not summary.partitions:
        return summary
    if summary.partitions - {attestation.partition}:
        raise ValueError(
            f"{name} signed other records as those of {attestation.batch.environment} on {attestation.batch.device}"
        )
    if not missing and statement.digest(in_toto.RECORDS) != summary.digest:
        raise ValueError(f"the records are not, byte for byte, what {name} signed")
    if not missing and statement.digest(in_toto.SUITE) != summary.suite:
        raise ValueError(f"{name} signed them as records of another suite")
    if summary.overall_result not in _POSSIBLE_RESULTS_OF_PART[statement.predicate.result] or (
        not missing and summary.overall_result != statement.predicate.result
    ):
        raise ValueError(f"{name} signed them as {statement.predicate.result}, and that they are not")
    _check_stack(signatures, attestation, summary, missing > 0)
    return summary


# {result of a whole batch: the results that a part of it can have}
_POSSIBLE_RESULTS_OF_PART: Final = {
    "PASSED": ["PASSED"],
    "WARNED": ["PASSED", "WARNED"],
    "FAILED": ["PASSED", "WARNED", "FAILED"],
}


def _check_stack(
    signatures: AttestationStore, attestation: Attestation, summary: in_toto.BatchSummary, is_partial: bool
) -> None:
    """Raise ValueError if an attestation names no image, bundle or lock file, or another one than its records do.

    Records do not name a lock file.  An unknown one may be an earlier version: it is reported, not refused.
    is_partial: whether records are missing.  A batch of several images names none, but the records that are found may
    all be of one image.
    """
    expected = summary.origin
    names = (in_toto.IMAGE, in_toto.BUNDLE, in_toto.LOCK)
    stated = {name: digest for name in names if (digest := attestation.statement.digest(name))}
    if is_partial and not stated.keys() - {in_toto.LOCK}:
        expected = {}
    if stated != expected if expected else stated.keys() - {in_toto.LOCK}:
        raise ValueError(
            f"{attestation.name} signed them as made of {_stack_text(stated)}, and they tell of {_stack_text(expected)}"
        )
    if not stated and not _has_no_lock(signatures, attestation.batch):
        raise ValueError(f"{attestation.name} does not say what their environment was made of")


def _has_no_lock(signatures: AttestationStore, batch: in_toto.SignedBatch) -> bool:
    """Return whether the environment has no lock file, as NVIDIA's images, which only the records name."""
    project = signatures.project
    return project is not None and in_toto.lock_digest(project, batch.environment, batch.device) is None


def _stack_text(digests: Mapping[str, str]) -> str:
    return " and ".join(f"the {name} {digest[:12]}" for name, digest in digests.items()) or "no image and no bundle"


def unverified_signers(envelopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (checksum, key hint) of envelopes without verification, to group records by signer; skip invalid ones."""
    for line in envelopes:
        try:
            hint, payload = (keyless if keyless.is_sigstore_bundle(line) else dsse).parse_unverified(line)
            batch = in_toto.parse_statement(payload).batch
        except ValueError:
            continue
        yield from ((checksum, hint) for checksum in batch.checksums)
