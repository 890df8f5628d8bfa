"""Which records an envelope makes trusted at most, by rules of its own: from the bytes alone."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from signers import Signer

Content = dict[str, Any]


def intact_lines(lines: Iterable[bytes]) -> dict[str, bytes]:
    """Return {checksum: line} of the lines whose checksum is that of their other bytes."""
    intact = {}
    for line in lines:
        before, field, after = line.removesuffix(b"\n").partition(b'"checksum":"')
        # `after` begins with the 64 digits of the checksum, a quote and a comma.
        digest = hashlib.sha256(before + after[66:]).hexdigest()
        if field and after[:64] == digest.encode("ascii"):
            intact[digest] = line
    return intact


def believable(
    envelopes: Iterable[bytes], lines: Mapping[str, bytes], trusted: Mapping[str, Signer]
) -> set[tuple[str, str]]:
    """Return the pairs (signer, checksum) that true statements of trusted signers name.

    trusted: {beginning of a device's model: the signer who is trusted for it}.
    """
    return {pair for envelope in envelopes for pair in _pairs(envelope, lines, trusted)}


def _pairs(envelope: bytes, lines: Mapping[str, bytes], trusted: Mapping[str, Signer]) -> Iterator[tuple[str, str]]:
    try:
        content = json.loads(envelope)
        body = _decode(content["payload"])
        statement = json.loads(body)
        kind = content["payloadType"].encode("utf-8")
        message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(body), body)
        (checksums,) = [_checksums(subject) for subject in statement["subject"] if subject["name"] == "records"]
        records = [json.loads(lines[checksum]) for checksum in checksums]
        if content["payloadType"] != "application/vnd.in-toto+json" or not _is_true(statement, records, lines):
            return
        signatures = [_decode(signature["sig"]) for signature in content["signatures"]]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return
    for device, signer in trusted.items():
        if any(_has_signed(signer, signature, message) for signature in signatures):
            yield from ((signer.name, record["checksum"]) for record in records if _is_of(device, record))


def _is_of(device: str, record: Content) -> bool:
    model: str = record["device"]["model"]
    return model.split("-")[0] == device


def _decode(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"))


def _checksums(subject: Content) -> list[str]:
    checksums: list[str] = subject["annotations"]["checksums"]
    return checksums


def _has_signed(signer: Signer, signature: bytes, message: bytes) -> bool:
    try:
        signer.key.public_key().verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _is_true(statement: Content, records: list[Content], lines: Mapping[str, bytes]) -> bool:
    """Return whether a statement says of its records what they are.

    Subjects: the records, the suite (their cases), and what their environment was made of, such as a lock file.
    """
    subjects = {subject["name"]: subject for subject in statement["subject"]}
    digests = {name: subject["digest"]["sha256"] for name, subject in subjects.items()}
    places = {(record["device"]["model"], record["environment"]) for record in records}
    notes = subjects["records"]["annotations"]
    cases = sorted({f"{record['source']} {record['case_hash']}\n" for record in records})
    observed = {record["observation"] for record in records}
    result = "FAILED" if observed & {"crashed", "timed-out"} else "WARNED" if "differs" in observed else "PASSED"
    predicate = statement["predicate"]
    return (
        statement["_type"] == "https://in-toto.io/Statement/v1"
        and statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
        and places == {(notes["device"], notes["environment"])}
        and digests["records"] == _sha256(b"".join(lines[record["checksum"]] for record in records))
        and digests["suite"] == _sha256("".join(cases).encode("ascii"))
        and predicate["result"] == result
        and not any(predicate.get(name) for name in ("passedTests", "warnedTests", "failedTests"))
        and len(subjects) == len(statement["subject"]) <= 3
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
