"""Find a CPython of a given minor on this host: on PATH, or among pyenv's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path


@lru_cache
def find_python(version: str) -> Path | None:
    """A CPython `version` (such as 3.7) that starts, or None.

    pyenv's shims are looked behind: a shim whose version is not activated fails when called.
    """
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        yield Path(sys.executable)
    for folder in map(Path, os.get_exec_path()):
        if folder.name != "shims":
            yield folder / f"python{version}"
    for root in _pyenv_roots():
        yield from sorted((root / "versions").glob(f"{version}.*/bin/python{version}"), reverse=True)


def _pyenv_roots() -> list[Path]:
    roots = [Path(os.environ["PYENV_ROOT"])] if "PYENV_ROOT" in os.environ else []
    roots += [folder.parent for folder in map(Path, os.get_exec_path()) if folder.name == "shims"]
    return list(dict.fromkeys([*roots, Path.home() / ".pyenv"]))


def _is(path: Path, version: str) -> bool:
    if not os.access(path, os.X_OK):
        return False
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([path, "-c", ask], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.strip() == version


if __name__ == "__main__":  # for scripts: python -m tfdet.interpreters 3.7
    found = find_python(sys.argv[1])
    print(found or "")
    sys.exit(found is None)
