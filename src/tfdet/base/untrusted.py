"""Untrusted input: regular files alone are read, up to a size; for anything else a DataError names the file."""

from __future__ import annotations

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
    """`path`, opened for reading. A FIFO or a device is refused: reading it may wait for ever, or never end."""
    try:
        _require_regular(path, os.stat(path).st_mode, advice)  # first: opening alone can act on a device
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise unreadable(path, error, advice) from error
    opened = open(number, "rb")  # noqa: SIM115 (the caller's)
    try:
        _require_regular(path, os.fstat(number).st_mode, advice)  # it may be another one by now
    except DataError:
        opened.close()
        raise
    return opened


def read_bytes(path: Path, advice: str = "", limit: int = MAX_BYTES) -> bytes:
    with open_file(path, advice) as source:
        try:
            content = source.read(limit + 1)
        except OSError as error:
            raise unreadable(path, error, advice) from error
    if len(content) > limit:
        raise DataError(f"{path}: larger than {limit >> 20} MiB", advice)
    return content


def sha256(path: Path) -> str:
    """In hex, of a file of any size."""
    with open_file(path) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def read_text(path: Path, advice: str = "", limit: int = MAX_BYTES) -> str:
    """UTF-8; DataError names the first line that is not."""
    return _decode_utf8(path, read_bytes(path, advice, limit), advice)


def read_text_lines(path: Path, advice: str = "") -> Iterator[str]:
    """As read_lines, each as UTF-8 and without its newline."""
    for number, line in enumerate(read_lines(path, advice), 1):
        yield _decode_utf8(path, line.removesuffix(b"\n"), advice, number)


def read_lines(path: Path, advice: str = "") -> Iterator[bytes]:
    """Each with its newline; DataError where one is longer than MAX_LINE_BYTES."""
    with open_file(path, advice) as source:
        number = 0
        while True:
            number += 1
            try:
                line = source.readline(MAX_LINE_BYTES + 1)
            except OSError as error:
                raise unreadable(path, error, advice) from error
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                raise DataError(f"{path}:{number}: longer than {MAX_LINE_BYTES >> 20} MiB", advice)
            yield line


def _decode_utf8(path: Path, content: bytes, advice: str, first_line: int = 1) -> str:
    """first_line: the number in its file of the line that `content` begins with."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + first_line
        raise DataError(f"{path}:{number}: not UTF-8: byte 0x{content[error.start]:02x}", advice) from None


def resolve(path: Path) -> Path:
    """As Path.resolve where symbolic links lead in a circle, too: Python 3.11 and 3.12 raise RuntimeError."""
    return Path(os.path.realpath(path))


def unreadable(path: Path, error: Exception, advice: str) -> DataError:
    """error: an OSError, or the ValueError of a path with a NUL."""
    if not isinstance(error, OSError):
        return DataError(f"{path}: {error}", advice)
    told = from_os_error(error, advice, path)
    return DataError(told.cause, told.advice)


def _require_regular(path: Path, mode: int, advice: str) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise DataError(f"{path}: {kind}, not a regular file", advice or "Name a regular file.")
