"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tfdet.base.errors import UsageError, from_system


def write_whole(path: Path, text: str, *, kept: str = "") -> None:
    """All or nothing: a kill or a full disk leaves the old file.

    Its folder is made if it is missing.  TfdetError, with what was kept as its advice, where it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # two processes may write the same file at once
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: not a regular file", "Name another file; a device is not replaced.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        told = from_system(error, path=path if error.filename in (None, str(part)) else None)
        told.advice = " ".join(filter(None, [told.advice, kept and f"{kept[0].upper()}{kept[1:]}."]))
        raise told from error
