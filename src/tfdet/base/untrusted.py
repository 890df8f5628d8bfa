"""Reading of untrusted files: only regular files, up to a size; a DataError names any other file."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tfdet.base.errors import DataError, from_os_error

MAX_BYTES = 1 << 30
MAX_LINE_BYTES = 1 << 24  # a record has 4 KiB

_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket",
          stat.S_IFDIR: "a folder"}  # fmt: skip


def open_file(path: Path, advice: str = "") -> io.BufferedReader:
    """Open a regular file for reading. DataError for a FIFO or a device, which may block or never end."""
    try:
        _require_regular(path, os.stat(path).st_mode, advice)  # first: opening alone can act on a device
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise unreadable(path, error, advice) from error
    file = open(descriptor, "rb")  # noqa: SIM115 (the caller closes it)
    try:
        _require_regular(path, os.fstat(descriptor).st_mode, advice)  # the file may have been replaced meanwhile
    except DataError:
        file.close()
        raise
    return file


def read_bytes(path: Path, advice: str = "", limit: int = MAX_BYTES) -> bytes:
    with open_file(path, advice) as source:
        try:
            content = _require_data(source.read(limit + 1))
        except OSError as error:
            raise unreadable(path, error, advice) from error
    if len(content) > limit:
        raise DataError(f"{path}: larger than {limit >> 20} MiB", advice)
    return content


def _require_data(content: bytes | None) -> bytes:
    """Raise OSError for a file that would block, such as /proc/kmsg, which calls itself a regular file."""
    if content is None:
        raise BlockingIOError(errno.EAGAIN, "has nothing to read now, and no end")
    return content


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hexadecimal."""
    with open_file(path) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def read_text(path: Path, advice: str = "", limit: int = MAX_BYTES) -> str:
    """Read a UTF-8 file; DataError names the first line that is not UTF-8."""
    return _decode_utf8(path, read_bytes(path, advice, limit), advice)


def read_text_lines(path: Path, advice: str = "") -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their newlines; DataError as from `read_lines` and `read_text`."""
    for number, line in enumerate(read_lines(path, advice), 1):
        yield _decode_utf8(path, line.removesuffix(b"\n"), advice, number)


def read_lines(path: Path, advice: str = "") -> Iterator[bytes]:
    """Yield the lines with their newlines; DataError for one longer than MAX_LINE_BYTES."""
    with open_file(path, advice) as source:
        number = 0
        while True:
            number += 1
            try:
                line = source.readline(MAX_LINE_BYTES + 1) or _require_data(source.read(1))
            except OSError as error:
                raise unreadable(path, error, advice) from error
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                raise DataError(f"{path}:{number}: longer than {MAX_LINE_BYTES >> 20} MiB", advice)
            yield line


def _decode_utf8(path: Path, content: bytes, advice: str, first_line: int = 1) -> str:
    """Decode part of a file. first_line: the number of the line with which `content` begins."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + first_line
        raise DataError(f"{path}:{number}: not UTF-8: byte 0x{content[error.start]:02x}", advice) from None


def resolve(path: Path) -> Path:
    """Resolve symbolic links, even circular ones, for which Path.resolve of Python 3.11 raises RuntimeError."""
    return Path(os.path.realpath(path))


def unreadable(path: Path, error: Exception, advice: str) -> DataError:
    """Return the DataError for a file. error: an OSError, or the ValueError of a path with a NUL character."""
    if not isinstance(error, OSError):
        return DataError(f"{path}: {error}", advice)
    converted = from_os_error(error, advice, path)
    return DataError(converted.cause, converted.advice)


def _require_regular(path: Path, mode: int, advice: str) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise DataError(f"{path}: {kind}, not a regular file", advice or "Name a regular file.")
