"""DSSE (Dead Simple Signing Envelope): sign payloads, and verify their envelopes with the keys of matrix/keys.

Protocol 1.0.0: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md, and envelope.md beside it.
The library securesystemslib (1.6) is not used: it refuses signatures without a keyid, and several signatures with the
same keyid, which the protocol allows.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from pydantic import Field, ValidationError

from tfdet.base.sanitize import escape_line
from tfdet.base.strict_json import strict_json
from tfdet.matrix.field_types import StrictModel, format_validation_error
from tfdet.matrix.keys import Keyring, PublicKey, key_id, raw_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"  # in-toto's envelope, spec/v1/envelope.md
MAX_SIGNATURES: Final = 8  # signatures in one envelope: each may be tried with every key
_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/_-]*={0,2}$")]


class Signature(StrictModel, extra="ignore"):
    """A signature of an envelope.  keyid: a hint, which proves nothing and may be absent (protocol.md)."""

    keyid: Annotated[str, Field(max_length=1000)] | None = None
    sig: _Base64


class Envelope(StrictModel, extra="ignore"):
    """An envelope.  Unknown fields are ignored, as the parsing rules of envelope.md require."""

    payload: _Base64
    payload_type: str = Field(alias="payloadType")
    signatures: list[Signature] = Field(min_length=1, max_length=MAX_SIGNATURES)


class VerifiedSignature(NamedTuple):
    """A key that verifies a signature.  line: the envelope with only that signature (envelope.md: equivalent)."""

    name: str
    key: PublicKey
    line: str


def pae(kind: str, body: bytes) -> bytes:
    """Return the bytes that are signed: the Pre-Authentication Encoding of protocol.md.  kind: the payload's type."""
    name = kind.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(body), body)


def sign_payload(body: bytes, key: Ed25519PrivateKey) -> str:
    """Return a signed line of a bundle: https://github.com/in-toto/attestation/blob/main/spec/v1/bundle.md."""
    public = key.public_key().public_bytes_raw()
    return _serialize(_b64_encode(body), key_id(public), _b64_encode(key.sign(pae(PAYLOAD_TYPE, body)))) + "\n"


def _serialize(payload: str, keyid: str, sig: str) -> str:
    signature = {"keyid": keyid, "sig": sig}
    return json.dumps({"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": [signature]})


def parse(line: str | bytes) -> Envelope:
    """Parse a line; raise ValueError if it is not a valid envelope."""
    try:
        return Envelope.model_validate(strict_json(line))
    except ValidationError as error:
        raise ValueError(f"no envelope: {format_validation_error(error.errors()[0], 'line')}") from None
    except ValueError as error:
        raise ValueError(f"no envelope: {error}") from None


def verify_envelope(line: str, keys: Keyring) -> tuple[list[VerifiedSignature], bytes]:
    """Return (the verified signatures, in their order; the payload).

    Raises:
        ValueError: no key of matrix/keys signed it, or the payload has another type.
    """
    envelope = parse(line)
    payload = _b64_decode(envelope.payload)
    verified = []
    for signature in envelope.signatures:
        if signer := _signer(signature, pae(envelope.payload_type, payload), keys):
            name, key = signer
            verified.append(VerifiedSignature(name, key, _serialize(envelope.payload, key.id, signature.sig)))
    if not verified:
        raise ValueError(_no_trusted_key_error(envelope, keys))
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ValueError(f"holds {envelope.payload_type!r}, not {PAYLOAD_TYPE}")
    return verified, payload


def _signer(signature: Signature, message: bytes, keys: Keyring) -> tuple[str, PublicKey] | None:
    """Return the name and the key that verify a signature, or None."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature_bytes = _b64_decode(signature.sig)
    for name, key in _candidates(signature, keys):
        try:
            Ed25519PublicKey.from_public_bytes(raw_public_key(key.public or "")).verify(signature_bytes, message)
        except InvalidSignature:
            continue
        return name, key
    return None


def _candidates(signature: Signature, keys: Keyring) -> Iterator[tuple[str, PublicKey]]:
    """Yield the keys to try: the one that the hint names, then the others, because a hint may be wrong."""
    hinted = keys.find_by_hint(signature.keyid or "")
    first = hinted[0] if hinted else ""
    for name in sorted(keys.by_name, key=lambda name: name != first):
        if keys.by_name[name].public is not None:
            yield name, keys.by_name[name]


def _no_trusted_key_error(envelope: Envelope, keys: Keyring) -> str:
    """Return the error message for an envelope that no key verifies."""
    hints = [signature.keyid or "" for signature in envelope.signatures]
    if hinted := next(filter(None, map(keys.find_by_hint, hints)), None):
        return f"its signature is not that of {hinted[0]}"
    return f"signed by a key that matrix/keys does not hold: {escape_line(hints[0][:16]) or 'it names none'}"


def parse_unverified(line: str) -> tuple[str, bytes]:
    """Return (the key hints, the payload) without verification.

    For a signature without a hint, the signature itself is used: an empty text would mean unsigned.
    """
    envelope = parse(line)
    hints = " ".join(signature.keyid or f"unnamed:{signature.sig}" for signature in envelope.signatures)
    return hints, _b64_decode(envelope.payload)


def _b64_encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _b64_decode(text: str) -> bytes:
    """Decode standard or URL-safe base64, both of which verifiers must accept (protocol.md)."""
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None
