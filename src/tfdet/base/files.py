"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from tfdet.base.errors import TfdetError


def write_whole(path: Path, text: str, *, kept: str = "") -> None:
    """All or nothing: a kill or a full disk leaves the old file.

    Its folder is made if it is missing.  TfdetError, with what was kept as its advice, where it cannot be written.
    """
    part = path.with_name(f"{path.name}.{os.getpid()}.part")  # two processes may write the same file at once
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        advice = f"Free some disk space{'; ' + kept if kept else ''}."
        raise TfdetError(f"{path}: {error.strerror}", advice) from error
