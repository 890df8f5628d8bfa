"""Signed by an identity in place of a key: sigstore, https://docs.sigstore.dev.

In CI a workflow proves who it is. An authority gives it a certificate of that for minutes, and a public log keeps what
was signed with it. The bundle carries all three, and is verified without a network, by the roots of trust that the
library `sigstore` brings: the extra `keyless`.
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
    """Of a bundle, https://github.com/sigstore/protobuf-specs; what is not read here the library judges."""

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


def is_bundle(line: str) -> bool:
    return MEDIA_TYPE in line


def verify_bundle(line: str, keys: Keyring) -> tuple[str, PublicKey, bytes]:
    """As dsse.verify_envelope; ValueError where no identity of matrix/keys signed it."""
    hint, _ = parse_unverified(line)
    found = keys.find_by_hint(hint)
    if found is None or found[1].workflow is None:
        raise ValueError(f"signed by an identity that matrix/keys does not hold: {escape_line(hint)}")
    name, key = found
    kind, body = _verified(line, name, found[1].workflow)
    if kind != PAYLOAD_TYPE:
        raise ValueError(f"holds {kind!r}, not {PAYLOAD_TYPE}")
    return name, key, body


def parse_unverified(line: str) -> tuple[str, bytes]:
    """(the identity that its certificate names, what is in it), whoever signed it."""
    try:
        bundle = _Bundle.model_validate(strict_json(line))
        shown = bundle.material.certificate or (bundle.material.chain and bundle.material.chain.certificates[0])
        identity = _identity(base64.b64decode(shown.raw if shown else "", validate=True))
        return identity, base64.b64decode(bundle.envelope.payload, validate=True)
    except ValidationError as error:
        raise ValueError(f"no bundle of sigstore: {format_validation_error(error.errors()[0])}") from None
    except ValueError as error:
        raise ValueError(f"no bundle of sigstore that a workflow signed: {error}") from None


def _identity(certificate: bytes) -> str:
    """The one URI that it names; ValueError for a certificate that is wrong in whatever way."""
    from cryptography import x509

    try:
        found = x509.load_der_x509_certificate(certificate)
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (identity,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        return identity
    except Exception as error:  # of the library, a class for each fault, and some that its documentation lacks
        raise ValueError(_error_text(error)) from None


def sign_bundle(body: bytes) -> str:
    """A line of a bundle, signed as the workflow that this runs in.  It asks sigstore's authority and its log."""
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


def _verified(line: str, name: str, workflow: WorkflowIdentity) -> tuple[str, bytes]:
    try:
        from sigstore.models import Bundle
        from sigstore.verify.policy import Identity
    except ImportError:
        raise ValueError(f"an identity signed it, and to verify that takes the library sigstore: {_NEEDED}") from None
    policy = Identity(identity=workflow.identity, issuer=workflow.issuer)
    try:
        found: Any = _verifier().verify_dsse(Bundle.from_json(line), policy)
    except Exception as error:  # whatever the library stumbles over, it has not verified
        raise ValueError(f"its signature is not that of {name}: {_error_text(error)}") from None
    kind, body = found
    return str(kind), bytes(body)


def _error_text(error: Exception) -> str:
    """Some of the library's errors say nothing."""
    return escape_line(str(error)) or type(error).__name__


@cache
def _verifier() -> Verifier:
    """By the roots that came with the library: nothing is asked of a network."""
    from sigstore.verify import Verifier

    return Verifier.production(offline=True)
