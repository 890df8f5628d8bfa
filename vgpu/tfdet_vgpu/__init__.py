"""The virtual GPU, compiled: the libraries that stand for NVIDIA's, for any Linux on x86-64 with AVX2."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """What a program's LD_LIBRARY_PATH and PATH have to begin with to see the virtual GPU."""
    return Path(__file__).parent / "lib"
