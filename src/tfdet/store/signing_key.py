"""The key of this machine: it never leaves it, and lies in no checkout."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.errors import DataError, UsageError, from_os_error
from tfdet.base.files import sync_folder
from tfdet.base.folders import is_there
from tfdet.base.untrusted import read_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def path() -> Path:
    """TFDET_KEY names another, as a cluster or CI hands secrets in: empty where a secret is not set, and then none."""
    from platformdirs import user_config_path

    told = os.environ.get("TFDET_KEY")
    return Path(told) if told else user_config_path("tfdet", appauthor=False) / "key.pem"


def generate() -> Ed25519PrivateKey:
    """Made and kept, readable for its user alone.  One that is there stays: with it went its signatures' maker."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    if is_there(path()) and load() is not None:  # a damaged one is told of as that
        raise _there_already(path())
    key, where = Ed25519PrivateKey.generate(), path()
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    part = where.with_name(f".{where.name}.{os.getpid()}.part")
    try:
        where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(pem)
            out.flush()
            os.fsync(out.fileno())
        os.link(part, where)  # unlike a renaming, it never takes the place of another key
        sync_folder(where.parent)
    except FileExistsError as error:
        raise _there_already(Path(error.filename2 or error.filename)) from None
    except OSError as error:
        raise from_os_error(error, path=where if error.filename in (None, str(part)) else None) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return key


def _there_already(where: Path) -> UsageError:
    return UsageError(f"{where}: a key is there already", "Look at it: tfdet key show.")


def load() -> Ed25519PrivateKey | None:
    """None where there is none; DataError where others could have read it, or where it is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    where = path()
    if not is_there(where) and not os.environ.get("TFDET_KEY"):
        return None
    content = read_bytes(where, "Make a key: tfdet key new.", limit=1 << 16)
    if stat.S_IMODE(where.stat().st_mode) & 0o077:
        raise DataError(f"{where}: others can read this private key", f"chmod 600 {where}, if nobody has.")
    if not content.strip():
        raise DataError(f"{where}: empty: its writing was cut short", f"Remove it: rm {where}; then: tfdet key new.")
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{where}: no private key in PEM", "Move that file away, then: tfdet key new.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{where}: no key of Ed25519", "Move that file away, then: tfdet key new.")
    return key


def require() -> Ed25519PrivateKey:
    if (key := load()) is None:
        raise UsageError("this machine has no key", "Make one: tfdet key new.")
    return key


def public_pem(key: Ed25519PrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization as form

    public = key.public_key()
    return public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo).decode("ascii")
