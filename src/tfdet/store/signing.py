"""Sign records with this machine's key, or as a CI workflow through sigstore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.files import write_atomic
from tfdet.base.paths import Project
from tfdet.store import dsse, in_toto
from tfdet.store.records import Record
from tfdet.store.signatures import bundle_path, read_bundle, unverified_signers

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SignCallback = Callable[[bytes], str]  # from a statement to a signed line of a bundle


def key_signer(key: Ed25519PrivateKey) -> SignCallback:
    return partial(dsse.sign_payload, key=key)


def attest(project: Project, records: Iterable[Record], sign: SignCallback) -> list[str]:
    """Sign in-toto statements, one or more for each environment and device; return their envelopes."""
    return [sign(in_toto.to_statement(project, batch)) for batch in in_toto.group_into_batches(records)]


def add_to_bundle(path: Path, envelopes: Sequence[str]) -> Path:
    """Add envelopes to the bundle beside a file; keep those of other signers and of other records.  Return its path."""
    bundle = bundle_path(path)
    signers_now = dict(unverified_signers(envelopes))  # {checksum of a record: hint of the key}
    own_signers, signed = set(signers_now.values()), signers_now.keys()
    kept = [
        line
        for _, line in read_bundle(bundle)
        if not (signers := dict(unverified_signers([line]))) or _is_retained(signers, own_signers, signed)
    ]
    write_atomic(bundle, "".join(f"{line.strip()}\n" for line in [*kept, *envelopes]))
    return bundle


def _is_retained(signers: dict[str, str], own_signers: set[str], signed: Set[str]) -> bool:
    """Return whether an envelope is from another signer, or names records that are not signed now."""
    return not own_signers.intersection(signers.values()) or not signed >= signers.keys()
