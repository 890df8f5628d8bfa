"""DSSE: something signed, in an envelope that says of which type it is.

Protocol 1.0.0, https://github.com/secure-systems-lab/dsse/blob/master/protocol.md; its envelope, envelope.md beside it.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError

from tfdet.matrix.keys import Keys, PublicKey, key_id, raw
from tfdet.matrix.models import Model

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"  # in-toto's envelope, spec/v1/envelope.md
_Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/_-]*={0,2}$")]


class Signature(Model):
    """keyid: a hint, which proves nothing (protocol.md)."""

    keyid: Annotated[str, Field(max_length=200)]
    sig: _Base64


class Envelope(Model):
    """One signature each: a second signer makes an envelope of their own, which envelope.md calls equivalent."""

    payload: _Base64
    payload_type: str = Field(alias="payloadType")
    signatures: list[Signature] = Field(min_length=1, max_length=1)


def pae(kind: str, body: bytes) -> bytes:
    """What is signed: the Pre-Authentication Encoding of protocol.md."""
    name = kind.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(body), body)


def seal(body: bytes, key: Ed25519PrivateKey) -> str:
    """A line of a bundle: https://github.com/in-toto/attestation/blob/main/spec/v1/bundle.md."""
    public = key.public_key().public_bytes_raw()
    signature = {"keyid": key_id(public), "sig": _encoded(key.sign(pae(PAYLOAD_TYPE, body)))}
    return json.dumps({"payload": _encoded(body), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}) + "\n"


def parse(line: str | bytes) -> Envelope:
    """ValueError says why it is none."""
    try:
        return Envelope.model_validate_json(line)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ValueError(f"no envelope: {'.'.join(map(str, fault['loc'])) or 'line'}: {fault['msg']}") from None


def opened(line: str, keys: Keys) -> tuple[str, PublicKey, bytes]:
    """(the key's name, the key, what it signed); ValueError where no key of matrix/keys did."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    envelope = parse(line)
    (signature,) = envelope.signatures
    found = keys.named(signature.keyid)
    if found is None or found[1].public is None:
        raise ValueError(f"signed by a key that matrix/keys does not hold: {signature.keyid[:16]}")
    name, key = found
    sealed = _decoded(envelope.payload)
    try:
        Ed25519PublicKey.from_public_bytes(raw(key.public or "")).verify(
            _decoded(signature.sig), pae(envelope.payload_type, sealed)
        )
    except InvalidSignature:
        raise ValueError(f"its signature is not that of {name}") from None
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ValueError(f"holds {envelope.payload_type!r}, not {PAYLOAD_TYPE}")
    return name, key, sealed


def unverified(line: str) -> tuple[str, bytes]:
    """(the hint at its key, what is in it), whoever signed it."""
    envelope = parse(line)
    return envelope.signatures[0].keyid, _decoded(envelope.payload)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _decoded(text: str) -> bytes:
    """Standard or URL-safe: verifiers have to accept either (protocol.md)."""
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64: {error}") from None
