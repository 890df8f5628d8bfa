"""Sign records with the key of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.files import write_whole
from tfdet.base.paths import Project
from tfdet.matrix.keys import key_id
from tfdet.store import envelope, statement
from tfdet.store.records import Record
from tfdet.store.signatures import beside, claimed, lines

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def sealed(project: Project, records: Iterable[Record], key: Ed25519PrivateKey) -> list[str]:
    """An envelope for each environment and device."""
    return [envelope.seal(statement.written(project, batch), key) for batch in statement.batches(records)]


def sign_beside(project: Project, path: Path, records: Sequence[Record], key: Ed25519PrivateKey) -> Path:
    """Into the bundle beside a file: what it holds of other keys, and of other records, stays."""
    bundle, own = beside(path), key_id(key.public_key().public_bytes_raw())
    signed = {record.checksum for record in records}
    kept = [line for line in lines(bundle) if not (told := claimed([line])) or _others(told, own, signed)]
    write_whole(bundle, "".join(f"{line.strip()}\n" for line in [*kept, *sealed(project, records, key)]))
    return bundle


def _others(told: dict[str, str], own: str, signed: set[str]) -> bool:
    """Is this of another key, or of records that are not signed anew?"""
    return own not in told.values() or not signed.issuperset(told)
