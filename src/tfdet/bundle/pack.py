"""Compression of a bundle's files, their division into parts, and the manifest that describes them.

A bundle carries an environment to a host without a network.

The files are divided into members of some 64 MiB, each a separate .xz stream, so that members are compressed, and on
the host unpacked, in parallel.  A finished member stays in the cache under the SHA-256 of its uncompressed content:
after an interrupted run, or with other trim options, only new members are compressed.  The same files give the same
bytes.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from tfdet.base.errors import RunFailedError
from tfdet.base.files import add_path_to_errors
from tfdet.bundle.contents import Entry
from tfdet_common.bundle_format import MAX_MEMBER_BYTES, checksum

PRESET = 6  # of xz; 0 is five times as fast, and a fifth larger
_MIN_CODE_BYTES = 1 << 20  # smaller libraries are packed together with other small files
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Piece:
    """A range of bytes of one entry."""

    entry: int  # number of the entry
    start: int
    size: int


@dataclass(frozen=True)
class Member:
    """The pieces of one .xz stream.  kind: whether they are machine code."""

    kind: Literal["plain", "code"]
    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True)
class PackedMember:
    """A compressed member, in the cache."""

    member: Member
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def members(entries: list[Entry]) -> list[Member]:
    """Group the entries into members: small files together, each library alone, and large files in several members."""
    grouped: list[Member] = []
    small: list[Piece] = []
    for number, entry in enumerate(entries):
        if _is_code(entry) or entry.size >= MAX_MEMBER_BYTES:
            kind: Literal["plain", "code"] = "code" if _is_code(entry) else "plain"
            for start in range(0, entry.size, MAX_MEMBER_BYTES):
                grouped.append(Member(kind, (Piece(number, start, min(MAX_MEMBER_BYTES, entry.size - start)),)))
        else:
            if sum(piece.size for piece in small) + entry.size > MAX_MEMBER_BYTES:
                grouped.append(Member("plain", tuple(small)))
                small = []
            small.append(Piece(number, 0, entry.size))
    return [*grouped, Member("plain", tuple(small))] if small else grouped


def _is_code(entry: Entry) -> bool:
    return ".so" in entry.path.rsplit("/", 1)[-1] and entry.size >= _MIN_CODE_BYTES


def compress(
    entries: list[Entry], cache: Path, advance: Callable[[int], None], preset: int = PRESET
) -> list[PackedMember]:
    """Compress every member, in order. advance(n): called after each n bytes of the entries."""
    cache.mkdir(parents=True, exist_ok=True)

    def compress_member(member: Member) -> PackedMember:
        packed = _compress_member(entries, member, cache, _filters(member, preset))
        advance(member.size)
        return packed

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(compress_member, member) for member in members(entries)]
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C, a full disk: keep finished members, start no others
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _filters(member: Member, preset: int) -> list[dict[str, int]]:
    """Return the filters of lzma: for machine code with the x86 filter, which makes it 2 % smaller, and faster."""
    lzma2 = {"id": lzma.FILTER_LZMA2, "preset": preset}
    return [{"id": lzma.FILTER_X86}, lzma2] if member.kind == "code" else [lzma2]


def _compress_member(entries: list[Entry], member: Member, cache: Path, filters: list[dict[str, int]]) -> PackedMember:
    content = b"".join(entries[p.entry].read(p.start, p.size) for p in member.pieces)
    key = hashlib.sha256(f"{member.kind} {filters}".encode() + content).hexdigest()
    path = cache / f"{key}.xz"
    if not path.exists():
        part = cache / f"{key}.{os.getpid()}.part"
        try:
            with add_path_to_errors(part):
                part.write_bytes(lzma.compress(content, filters=filters))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    return PackedMember(member, path)


def digests(entries: list[Entry]) -> list[str]:
    """Return the SHA-256 of every entry's content on the host."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(_digest, entries))


def _digest(entry: Entry) -> str:
    digest = hashlib.sha256()
    for start in range(0, entry.size, MAX_MEMBER_BYTES):
        digest.update(entry.read(start, min(MAX_MEMBER_BYTES, entry.size - start)))
    return digest.hexdigest()


def write_parts(packed: list[PackedMember], folder: Path, stem: str, part_size: int) -> list[dict[str, Any]]:
    """Write the concatenated members in files of `part_size` bytes, `stem.part-01` and so on.

    Return [{name, size, sha256}] of the parts.
    """
    total = sum(p.size for p in packed)
    count = -(-total // part_size)
    width = max(2, len(str(count)))
    names = [f"{stem}.part-{number:0{width}}" for number in range(1, count + 1)]
    _check_disk_space(folder, total - sum((folder / n).stat().st_size for n in names if (folder / n).exists()))
    stream = _blocks(packed)
    parts, rest = [], b""
    for name in names:
        digest, size = hashlib.sha256(), 0
        unfinished = folder / f"{name}.part"
        try:
            with add_path_to_errors(unfinished), unfinished.open("wb") as out:
                while size < part_size and (block := rest or next(stream, b"")):
                    block, rest = block[: part_size - size], block[part_size - size :]
                    out.write(block)
                    digest.update(block)
                    size += len(block)
            unfinished.replace(folder / name)
        finally:
            unfinished.unlink(missing_ok=True)
        parts.append({"name": name, "size": size, "sha256": digest.hexdigest()})
    return parts


def _check_disk_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise RunFailedError(
            f"{folder}: not enough disk space for parts of {needed >> 20} MiB ({free >> 20} MiB free)",
            "Free some space and run again.",
        )


def _blocks(packed: Iterable[PackedMember]) -> Iterator[bytes]:
    for member in packed:
        with member.path.open("rb") as source:
            while block := source.read(_BLOCK):
                yield block


def manifest(
    entries: list[Entry], packed: list[PackedMember], parts: list[dict[str, Any]], facts: dict[str, Any]
) -> dict[str, Any]:
    """Return the manifest: all that unbundle.py needs to unpack and verify the bundle."""
    sha256_digests = digests(entries)
    content = {
        **facts,
        "parts": parts,
        "members": [
            {"packed": p.size, "pieces": [[piece.entry, piece.start, piece.size] for piece in p.member.pieces]}
            for p in packed
        ],
        "files": [
            {"path": e.path, "size": e.size, "sha256": sha256_digests[n], "executable": e.executable}
            for n, e in enumerate(entries)
        ],
    }
    content["checksum"] = checksum(content)
    return content


class ProgressEstimator:
    """A callable that takes a number of further bytes done, and reports progress and time left about ten times."""

    def __init__(self, total: int, report_progress: Callable[[str], None]) -> None:
        self._total, self._report_progress = total, report_progress
        self._done, self._last_tenth = 0, 0
        self._start = time.monotonic()
        self._lock = Lock()  # several threads call this object

    def __call__(self, size: int) -> None:
        with self._lock:
            self._add(size)

    def _add(self, size: int) -> None:
        self._done += size
        tenth = 10 * self._done // max(1, self._total)
        if tenth > self._last_tenth:
            self._last_tenth = tenth
            seconds_left = (time.monotonic() - self._start) * (self._total - self._done) / self._done
            self._report_progress(f"compressed {10 * tenth} %, {seconds_left / 60:.0f} min left" if seconds_left >= 90
                      else f"compressed {10 * tenth} %, {seconds_left:.0f} s left")  # fmt: skip
