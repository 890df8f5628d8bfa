"""Sign records: with the key of this machine, or as the workflow that this runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.files import write_atomic
from tfdet.base.paths import Project
from tfdet.store import envelope, statement
from tfdet.store.records import Record
from tfdet.store.signatures import beside, claimed, lines

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

Seal = Callable[[bytes], str]  # a statement into a line of a bundle


def by(key: Ed25519PrivateKey) -> Seal:
    return partial(envelope.seal, key=key)


def sealed(project: Project, records: Iterable[Record], seal: Seal) -> list[str]:
    """An envelope for each environment and device."""
    return [seal(statement.written(project, batch)) for batch in statement.batches(records)]


def sign_beside(project: Project, path: Path, records: Sequence[Record], seal: Seal) -> Path:
    """Into the bundle beside a file: what it holds of other signers, and of other records, stays."""
    bundle, signed = beside(path), {record.checksum for record in records}
    new = sealed(project, records, seal)
    own = {hint for _, hint in claimed(new)}
    kept = [line for line in lines(bundle) if not (told := dict(claimed([line]))) or _others(told, own, signed)]
    write_atomic(bundle, "".join(f"{line.strip()}\n" for line in [*kept, *new]))
    return bundle


def _others(told: dict[str, str], own: set[str], signed: set[str]) -> bool:
    """Is this of another signer, or of records that are not signed anew?"""
    return not own.intersection(told.values()) or not signed.issuperset(told)
