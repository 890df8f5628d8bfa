"""The key of this machine: it never leaves it, and lies in no checkout."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.errors import DataError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def path() -> Path:
    """TFDET_KEY names another, as a cluster or CI hands secrets in: empty where a secret is not set, and then none."""
    from platformdirs import user_config_path

    told = os.environ.get("TFDET_KEY")
    return Path(told) if told else user_config_path("tfdet", appauthor=False) / "key.pem"


def new() -> Ed25519PrivateKey:
    """Made and kept, readable for its user alone.  One that is there stays: with it went its signatures' maker."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, where = Ed25519PrivateKey.generate(), path()
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with os.fdopen(os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            out.write(pem)
    except FileExistsError:
        raise UsageError(f"{where}: a key is there already", "Look at it: tfdet key show.") from None
    return key


def load() -> Ed25519PrivateKey | None:
    """None where there is none; DataError where others could have read it, or where it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    where = path()
    if not where.exists() and not os.environ.get("TFDET_KEY"):
        return None
    try:
        if stat.S_IMODE(where.stat().st_mode) & 0o077:
            raise DataError(f"{where}: others can read this private key", f"chmod 600 {where}, if nobody has.")
        key = load_pem_private_key(where.read_bytes(), password=None)
    except OSError as error:
        raise DataError(f"{where}: {error.strerror}", "Make a key: tfdet key new.") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{where}: no private key in PEM", "Move that file away, then: tfdet key new.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{where}: no key of Ed25519", "Move that file away, then: tfdet key new.")
    return key


def need() -> Ed25519PrivateKey:
    if (key := load()) is None:
        raise UsageError("this machine has no key", "Make one: tfdet key new.")
    return key


def public_pem(key: Ed25519PrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization as form

    public = key.public_key()
    return public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo).decode("ascii")
