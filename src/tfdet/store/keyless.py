"""Sign and verify with a CI workflow's identity in place of a key, by sigstore (https://docs.sigstore.dev).

A workflow proves its identity to an authority, which issues a certificate that is valid for minutes; a public log
records the signature.  The bundle contains the signature, the certificate and the log entry.  It is verified offline,
with the roots of trust that the library `sigstore` (the extra `keyless`) ships with.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tfdet.base.errors import RunFailedError, UsageError
from tfdet.base.extras import install_line
from tfdet.base.sanitize import escape_line
from tfdet.base.strict_json import strict_json
from tfdet.matrix.field_types import format_validation_error
from tfdet.matrix.keys import Keyring, PublicKey, WorkflowIdentity
from tfdet.store.dsse import PAYLOAD_TYPE

if TYPE_CHECKING:
    from sigstore.verify import Verifier

MEDIA_TYPE: Final = "application/vnd.dev.sigstore.bundle"
_NEEDED: Final = install_line("sigstore")


class _Part(BaseModel):
    """A part of a bundle (https://github.com/sigstore/protobuf-specs); only the fields that this module reads."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class _Certificate(_Part):
    raw: str = Field(alias="rawBytes")


class _Chain(_Part):
    certificates: Annotated[list[_Certificate], Field(min_length=1)]


class _Material(_Part):
    certificate: _Certificate | None = None
    chain: _Chain | None = Field(default=None, alias="x509CertificateChain")


class _Envelope(_Part):
    payload: str


class _Bundle(_Part):
    material: _Material = Field(alias="verificationMaterial")
    envelope: _Envelope = Field(alias="dsseEnvelope")


def is_sigstore_bundle(line: str) -> bool:
    return MEDIA_TYPE in line


def verify_sigstore_bundle(line: str, keys: Keyring) -> tuple[str, PublicKey, bytes]:
    """Return (name, key, payload); raise ValueError if no identity of matrix/keys signed the bundle."""
    hint, _ = parse_unverified(line)
    hinted = keys.find_by_hint(hint)
    if hinted is None or hinted[1].workflow is None:
        raise ValueError(f"signed by an identity that matrix/keys does not hold: {escape_line(hint)}")
    name, key = hinted
    payload_type, payload = _verify(line, name, hinted[1].workflow)
    if payload_type != PAYLOAD_TYPE:
        raise ValueError(f"holds {payload_type!r}, not {PAYLOAD_TYPE}")
    return name, key, payload


def parse_unverified(line: str) -> tuple[str, bytes]:
    """Return (the identity that the certificate names, the payload) without verification."""
    try:
        bundle = _Bundle.model_validate(strict_json(line))
        certificate = bundle.material.certificate or (bundle.material.chain and bundle.material.chain.certificates[0])
        identity = _identity(base64.b64decode(certificate.raw if certificate else "", validate=True))
        return identity, base64.b64decode(bundle.envelope.payload, validate=True)
    except ValidationError as error:
        raise ValueError(f"no bundle of sigstore: {format_validation_error(error.errors()[0])}") from None
    except ValueError as error:
        raise ValueError(f"no bundle of sigstore that a workflow signed: {error}") from None


def _identity(certificate: bytes) -> str:
    """Return the only URI that a DER certificate names; raise ValueError for any other certificate."""
    from cryptography import x509

    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (identity,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        return identity
    except Exception as error:  # the library raises many classes, some of them undocumented
        raise ValueError(_error_text(error)) from None


def sign_bundle(body: bytes) -> str:
    """Return a payload as a signed bundle line, with the identity of the current workflow (requires network access)."""
    try:
        from sigstore.dsse import Statement
        from sigstore.errors import Error
        from sigstore.models import ClientTrustConfig
        from sigstore.oidc import IdentityError, IdentityToken, detect_credential
        from sigstore.sign import SigningContext
    except ImportError as error:
        raise UsageError("to sign without a key takes the library sigstore", _NEEDED) from error
    try:
        token = detect_credential()
        if token is None:
            raise RunFailedError(
                "nothing here proves who this is", "Run it in a workflow that may ask for an id-token."
            )
        with SigningContext.from_trust_config(ClientTrustConfig.production()).signer(IdentityToken(token)) as signer:
            bundle = signer.sign_dsse(Statement(body)).to_json()
    except (Error, IdentityError) as error:
        raise RunFailedError(f"sigstore: {error}", "Sign with a key: tfdet key new.") from error
    return json.dumps(json.loads(bundle)) + "\n"


def _verify(line: str, name: str, workflow: WorkflowIdentity) -> tuple[str, bytes]:
    try:
        from sigstore.models import Bundle
        from sigstore.verify.policy import Identity
    except ImportError:
        raise ValueError(f"an identity signed it, and to verify that takes the library sigstore: {_NEEDED}") from None
    policy = Identity(identity=workflow.identity, issuer=workflow.issuer)
    try:
        verified: Any = _verifier().verify_dsse(Bundle.from_json(line), policy)
    except Exception as error:  # any error means that it is not verified
        raise ValueError(f"its signature is not that of {name}: {_error_text(error)}") from None
    payload_type, payload = verified
    return str(payload_type), bytes(payload)


def _error_text(error: Exception) -> str:
    """Return an error's message, or its class, as some errors of the library have no message."""
    return escape_line(str(error)) or type(error).__name__


@cache
def _verifier() -> Verifier:
    """Return a verifier that uses the library's own roots of trust, without a network."""
    from sigstore.verify import Verifier

    return Verifier.production(offline=True)
