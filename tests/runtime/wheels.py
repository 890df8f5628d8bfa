"""Build a wheel and read its content."""

from __future__ import annotations

import email
import email.message
import os
import subprocess
import sys
import zipfile
from pathlib import Path


def build(project: Path, folder: Path, release: bool = True) -> Path:
    """Build the wheel as publish.yml does, or (`release` false) as pip does from a checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    environ = {**os.environ, "TFDET_RELEASE": "1" if release else ""}
    subprocess.run(command, cwd=project, check=True, capture_output=True, env=environ)
    (wheel,) = folder.iterdir()
    return wheel


def contents(wheel: Path) -> tuple[set[str], email.message.Message]:
    """Return the names of the files without metadata, and the metadata."""
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        return {n for n in names if ".dist-info/" not in n}, email.message_from_bytes(content.read(metadata))
