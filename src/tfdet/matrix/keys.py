"""Trusted signers: the files of matrix/keys, one for each public key or sigstore identity.

Records are results of runs. They are signed in batches; an envelope carries the signed statement about a batch and the
signatures. A line of builds is `stock`, those of the framework's own project, or `ngc`, those of NVIDIA.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from tfdet.matrix.devices import is_model
from tfdet.matrix.field_types import StrictModel, Text
from tfdet.matrix.lookalikes import confusable_skeletons, is_bidi_control, visible_characters
from tfdet.matrix.models import Environment

GITHUB: Final = "https://token.actions.githubusercontent.com"
MAX_NAME: Final = 120  # characters of a signer's name, which tables and messages show
_BEGIN, _END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
_ED25519: Final = bytes.fromhex("302a300506032b6570032100")  # DER prefix of the 32 bytes: RFC 8410, section 4
_SIGN: Final = 1 << 255  # the sign bit of x; the bits below are y
_PRIME: Final = _SIGN - 19
# y of all points of order 1 to 8, in every encoding below 2^255: a signature for such a key needs no private key.
_SMALL_ORDER: Final = {
    *(0, 1, _PRIME - 1, _PRIME, _PRIME + 1),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
}


def raw_public_key(pem: str) -> bytes:
    """Return the 32 bytes of an Ed25519 public key in PEM; ValueError says why it is invalid.

    This does not import the library for signatures: every command reads the matrix, but few verify signatures.
    """
    lines = pem.split()
    if " ".join(lines[:3]) != _BEGIN or " ".join(lines[-3:]) != _END:
        raise ValueError(f"a public key in PEM stands between {_BEGIN} and {_END}")
    try:
        der = base64.b64decode("".join(lines[3:-3]), validate=True)
    except binascii.Error as error:
        raise ValueError(f"no base64 between the lines of the PEM: {error}") from error
    if not der.startswith(_ED25519) or len(der) != len(_ED25519) + 32:
        raise ValueError("no public key of Ed25519, the only kind accepted here")
    point = der[len(_ED25519) :]
    if int.from_bytes(point, "little") % _SIGN in _SMALL_ORDER:
        raise ValueError("a weak key: anybody can sign for it")
    return point


def key_id(public: bytes) -> str:
    """Return the name of a key in envelopes: an untrusted hint for the search of the key."""
    return hashlib.sha256(public).hexdigest()


def _check_ed25519(pem: str) -> str:
    raw_public_key(pem)
    return pem


def normalize_signer_name(text: str) -> str:
    """Return the name with single blanks, in form C; ValueError if it shows nothing or controls a terminal."""
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if not visible_characters(name):
        raise ValueError("a signer has a name")
    if len(name) > MAX_NAME:
        raise ValueError(f"a name has at most {MAX_NAME} characters")
    for char in name:
        if unicodedata.category(char) in ("Cc", "Cs") or is_bidi_control(char):
            raise ValueError(f"U+{ord(char):04X} is not allowed in a name")
    return name


class TrustScope(StrictModel):
    """The devices and environments that a key is trusted for; a field that is absent restricts nothing."""

    device: Text = Field(description="a kind of device: a file of matrix/devices")
    models: list[Text] = Field(default=[], description="models of that kind, such as nvidia-h100-80gb-hbm3; empty: all")
    framework: Text | None = None
    lines: list[Literal["stock", "ngc"]] = Field(default=[], description="lines of builds; empty: all")

    def covers(self, model: str, environment: Environment) -> bool:
        """Return whether the scope includes this model of a device and this environment."""
        return (
            is_model(model, self.device)
            and (not self.models or model in self.models)
            and self.framework in (None, environment.framework)
            and (not self.lines or environment.line in self.lines)
        )


class Revocation(StrictModel):
    on: date
    why: Text


class WorkflowIdentity(StrictModel):
    """A sigstore identity, which signs without a key: the values that its certificate must contain."""

    identity: Text = Field(
        description="for example https://github.com/OWNER/NAME/.github/workflows/matrix.yml@refs/heads/main"
    )
    issuer: Text = Field(default=GITHUB, description="OpenID Connect issuer that vouches for the identity")


class PublicKey(StrictModel):
    """A public key, or a sigstore identity, that this repository trusts or has trusted."""

    signer: Annotated[Text, AfterValidator(normalize_signer_name)] = Field(
        description="holder of the key; several keys of one holder count as one signer"
    )
    public: Annotated[Text, AfterValidator(_check_ed25519)] | None = Field(
        default=None, description="Ed25519, in PEM, as `tfdet key show` prints it"
    )
    workflow: WorkflowIdentity | None = Field(default=None, description="sigstore identity, instead of `public`")
    since: date = Field(description="records that were started earlier are not trusted")
    until: date | None = Field(default=None, description="last day on which records are trusted")
    trusted_for: list[TrustScope] = Field(
        min_length=1, description="devices and environments for which the key is trusted"
    )
    revoked: Revocation | None = Field(
        default=None, description="revocation, after which no signature of the key counts, whatever its date"
    )
    notes: str = ""

    @model_validator(mode="after")
    def _check_dates(self) -> PublicKey:
        if self.until is not None and self.until < self.since:
            raise ValueError(f"until {self.until} is before since {self.since}")
        return self

    @model_validator(mode="after")
    def _check_alternatives(self) -> PublicKey:
        if (self.public is None) == (self.workflow is None):
            raise ValueError("a file has a key (`public`) or an identity (`workflow`), and not both")
        return self

    @property
    def id(self) -> str:
        """Return the name of the key or identity in envelopes."""
        return self.workflow.identity if self.workflow else key_id(raw_public_key(self.public or ""))

    def untrusted_reason(self, model: str, environment: Environment | None) -> str:
        """Return why the key is not trusted for this device and environment; empty if it is."""
        if self.revoked:
            return f"revoked on {self.revoked.on}: {self.revoked.why}"
        if environment is None or not any(scope.covers(model, environment) for scope in self.trusted_for):
            return f"not trusted for {model} there"
        return ""

    def is_valid_at(self, started: str) -> bool:
        """Return whether the key is trusted for a record that was started at this time, in ISO 8601."""
        day = started[:10]
        return str(self.since) <= day and (self.until is None or day <= str(self.until))


@dataclass(frozen=True)
class Keyring:
    """All trusted keys, by the names of their files."""

    by_name: Mapping[str, PublicKey] = field(default_factory=dict)

    def find_by_hint(self, identity: str) -> tuple[str, PublicKey] | None:
        """Return (file name, key) for the hint in an envelope; None if there is no such key."""
        return next(((name, key) for name, key in self.by_name.items() if key.id == identity), None)

    def _find_lookalikes(self) -> Iterator[str]:
        """Yield faults: names of signers that look alike, since one signer under two names would count twice."""
        if len({key.signer for key in self.by_name.values()}) < 2:
            return
        signers: dict[tuple[int, str], tuple[str, str]] = {}  # {numbered skeleton: (signer, file name)}
        for name, key in self.by_name.items():
            # A name has a skeleton for each way in which names look alike; those of the same number are compared.
            for skeleton in enumerate(confusable_skeletons(key.signer)):
                other_signer, other_name = signers.setdefault(skeleton, (key.signer, name))
                if other_signer != key.signer:
                    similarity = f"{key.signer!a} looks like {other_signer!a} in keys/{other_name}.toml"
                    yield f"keys/{name}.toml: signer: {similarity}: write one holder alike, or choose another name"
                    break

    def find_faults(self, kinds: Mapping[str, object]) -> list[str]:
        """Return faults across the files.  kinds: the kinds of devices, by name."""
        names_by_id: dict[str, str] = {}
        faults = list(self._find_lookalikes())
        for name, key in self.by_name.items():
            if (other_name := names_by_id.setdefault(key.id, name)) != name:
                faults.append(f"keys/{name}.toml: public: the key of keys/{other_name}.toml")
            faults += [
                f"keys/{name}.toml: trusted_for: {scope.device!r} is not a kind of device"
                for scope in key.trusted_for
                if scope.device not in kinds
            ]
        return faults
