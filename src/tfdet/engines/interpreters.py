"""Search for a CPython of a given minor version, such as 3.7, on this host."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

from tfdet_common import interpreters


@lru_cache
def find_python(version: str) -> Path | None:
    """Return a CPython of this version (such as 3.7) that starts, or None."""
    path = interpreters.find_python(version)
    return Path(path) if path else None


if __name__ == "__main__":  # for scripts: python -m tfdet.engines.interpreters 3.7
    interpreter = find_python(sys.argv[1])
    print(interpreter or "")
    sys.exit(interpreter is None)
