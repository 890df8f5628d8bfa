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

SignCallback = Callable[[bytes], str]  # a statement to a signed line of a bundle


def key_signer(key: Ed25519PrivateKey) -> SignCallback:
    return partial(dsse.sign_payload, key=key)


def attest(project: Project, records: Iterable[Record], sign: SignCallback) -> list[str]:
    """Sign in-toto statements, one or more for each environment and device; return their envelopes."""
    return [sign(in_toto.to_statement(project, batch)) for batch in in_toto.group_into_batches(records)]


def add_to_bundle(path: Path, new: Sequence[str]) -> Path:
    """Add envelopes to the bundle beside a file; those of other signers, and of other records, stay."""
    bundle = bundle_path(path)
    signers_now = dict(unverified_signers(new))
    own, signed = set(signers_now.values()), signers_now.keys()
    kept = [
        line
        for _, line in read_bundle(bundle)
        if not (signers := dict(unverified_signers([line]))) or _is_retained(signers, own, signed)
    ]
    write_atomic(bundle, "".join(f"{line.strip()}\n" for line in [*kept, *new]))
    return bundle


def _is_retained(signers: dict[str, str], own: set[str], signed: Set[str]) -> bool:
    """Is this envelope from another signer, or of records that are not signed again now?"""
    return not own.intersection(signers.values()) or not signed >= signers.keys()
