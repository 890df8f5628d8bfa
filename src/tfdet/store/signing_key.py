"""This machine's private signing key, which is stored outside of any checkout and never leaves the machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tfdet.base.errors import DataError, UsageError, from_os_error
from tfdet.base.files import part_path, sync, sync_folder
from tfdet.base.folders import is_there
from tfdet.base.untrusted import read_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def path() -> Path:
    """Return the path of the key: TFDET_KEY if that is set and not empty, else key.pem in the user's config folder."""
    from platformdirs import user_config_path

    configured = os.environ.get("TFDET_KEY")
    return Path(configured) if configured else user_config_path("tfdet", appauthor=False) / "key.pem"


def generate() -> Ed25519PrivateKey:
    """Create the key, readable for its user only; raise UsageError if there is one, which is never overwritten."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    file = path()
    if is_there(file) and load() is not None:  # load() reports a damaged key
        with contextlib.suppress(OSError), _new_part(file):
            pass  # it only removes what a killed process left
        raise _key_exists_error(file)
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _new_part(file) as part:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(pem)
                sync(out)
            os.link(part, file)  # unlike a rename, it never replaces another key
            sync_folder(file.parent)
    except FileExistsError as error:
        raise _key_exists_error(Path(error.filename2 or error.filename)) from None
    except OSError as error:
        raise from_os_error(error, path=file if error.filename in (None, str(part_path(file))) else None) from error
    return key


@contextlib.contextmanager
def _new_part(file: Path) -> Iterator[Path]:
    """Give the path of the file that becomes the key; remove it at the end, and first that of a killed process."""
    part = part_path(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        part.unlink(missing_ok=True)  # it may be another name of the key: it is never truncated
        try:
            yield part
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
    finally:
        os.close(folder)


def _key_exists_error(file: Path) -> UsageError:
    return UsageError(f"{file}: a key is there already", "Look at it: tfdet key show.")


def load() -> Ed25519PrivateKey | None:
    """Return the key, or None if there is none; raise DataError if it is damaged, or readable by other users."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    file = path()
    if not is_there(file) and not os.environ.get("TFDET_KEY"):
        return None
    content = read_bytes(file, "Make a key: tfdet key new.", limit=1 << 16)
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise DataError(f"{file}: others can read this private key", f"chmod 600 {file}, if nobody has.")
    if not content.strip():
        raise DataError(f"{file}: empty: its writing was cut short", f"Remove it: rm {file}; then: tfdet key new.")
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{file}: no private key in PEM", "Move that file away, then: tfdet key new.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{file}: no key of Ed25519", "Move that file away, then: tfdet key new.")
    return key


def require() -> Ed25519PrivateKey:
    """Return the key; raise UsageError if there is none."""
    if (key := load()) is None:
        raise UsageError("this machine has no key", "Make one: tfdet key new.")
    return key


def public_pem(key: Ed25519PrivateKey) -> str:
    from cryptography.hazmat.primitives import serialization

    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, form).decode("ascii")
