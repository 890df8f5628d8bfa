"""Bundles of a few files, for the tests of packing and unpacking."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfdet.bundle import pack, script
from tfdet.bundle.contents import Entry
from tfdet_common.bundle_format import checksum

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
PART = 2048  # bytes of each part, at most
# The manifest without parts, members, files and checksum.  disk: bytes of the unpacked bundle.
FACTS = {
    "schema": 1, "environment": "tf2.21", "device": "gpu", "python": f"3.{sys.version_info.minor}", "glibc": "2.17",
    "min_driver": "525.60.13", "compute_capability": "9.0", "brings_cuda": True, "host_libraries": [],
    "host_packages": [], "trimmed": [], "stubbed": [], "left_out": [], "from_host": [], "disk": 1 << 20,
}  # fmt: skip


def random_bytes(size: int, seed: bytes = b"") -> bytes:
    """Return bytes that do not compress, so that the number of parts is known."""
    blocks = [hashlib.sha256(seed + bytes([n // 256, n % 256])).digest() for n in range(-(-size // 32))]
    return b"".join(blocks)[:size]


FILES = [
    Entry("site/large.so", random_bytes(5000) + bytes(300_000) + random_bytes(3000, b"end"), executable=True),
    Entry("site/package/empty.py", b""),
    Entry("site/package/text.py", b"print('text')\n" * 9),
]


def make_bundle(folder: Path, entries: list[Entry] = FILES, **changes: Any) -> Path:
    """Make a bundle of these entries in `folder`/carried; return its path."""
    out = folder / "carried"
    out.mkdir(parents=True)
    packed = pack.compress(entries, folder / "cache", lambda size: None)
    parts = pack.write_parts(packed, out, "tf2.21-gpu", PART)
    write_manifest(out, pack.manifest(entries, packed, parts, FACTS | changes))
    write_script(out)
    return out


def write_script(folder: Path) -> Path:
    """Write unbundle.py as `tfdet bundle` does; return its path."""
    path = folder / script.NAME
    path.write_text(script.build(RUNTIME), "utf-8")
    return path


def write_manifest(out: Path, content: dict[str, Any]) -> None:
    """Write the manifest with a right checksum."""
    content["checksum"] = checksum(content)
    (out / "manifest.json").write_text(json.dumps(content))


def unbundle(
    bundle: Path, *arguments: str, python: list[str] | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run unbundle.py of the bundle in its parent folder; `python`: another command than this Python and that file."""
    command = [*(python or [sys.executable, str(bundle / "unbundle.py")]), *arguments]
    return subprocess.run(command, cwd=bundle.parent, capture_output=True, text=True, timeout=timeout)


def is_nothing_unpacked(bundle: Path) -> bool:
    """Return whether the bundle has no folder, complete or partial."""
    return not [path for path in bundle.iterdir() if path.is_dir()]


def change_manifest(bundle: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the bundle's manifest by `change`, which edits it in place, and its checksum; return the bundle."""
    content = json.loads((bundle / "manifest.json").read_text())
    change(content)
    write_manifest(bundle, content)
    return bundle
