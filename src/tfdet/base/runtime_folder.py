"""The runtime folder of an installed tfdet: copies of the packages that environments import, and of no others."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("tfdet_common", "tfdet_probe", "tfdeterminism")


def materialize_runtime(cache: Path) -> Path:
    """Return a folder with copies of the packages, created once per content."""
    content = {name: path.read_bytes() for name, path in _files()}
    digest = hashlib.sha256()
    for name, data in sorted(content.items()):
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    folder = cache / digest.hexdigest()[:16]
    if not folder.is_dir():
        _copy_packages(folder, content)
    return folder


def _copy_packages(folder: Path, content: dict[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=folder.parent) as temporary:
        complete = Path(temporary, "runtime")
        for name, data in content.items():
            (complete / name).parent.mkdir(parents=True, exist_ok=True)
            (complete / name).write_bytes(data)
        try:
            complete.rename(folder)
        except OSError:
            if not folder.is_dir():  # if it is one, another process created it first
                raise


def _files() -> Iterator[tuple[str, Path]]:
    """Yield (path below the runtime folder, file) of the packages and of `unbundle`, which `tfdet bundle` reads."""
    folders = [Path(__file__).parents[1] / "data" / "runtime" / "unbundle", *map(package_folder, PACKAGES)]
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(folder.parent).as_posix(), path


def package_folder(package: str) -> Path:
    """Return the folder of an importable package."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None  # tfdet contains these packages, or depends on them
    return Path(spec.origin).parent
