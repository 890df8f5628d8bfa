"""The compiled virtual GPU: libraries that replace NVIDIA's, for any Linux on x86-64 with AVX2."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Return the folder that must be first in a program's LD_LIBRARY_PATH and PATH, so that it uses the virtual GPU."""
    return Path(__file__).parent / "lib"
