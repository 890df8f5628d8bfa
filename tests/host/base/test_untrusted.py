"""A path that is not a plain, valid file is reported by its name, and no reader blocks on it."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from tfdet.base import untrusted
from tfdet.base.errors import DataError, ExitCode, UsageError, from_os_error
from tfdet.base.files import require_writable, write_atomic
from tfdet.base.paths import Project
from tfdet.base.strict_json import MAX_DEPTH, read_json, strict_json
from tfdet.base.untrusted import MAX_LINE_BYTES, open_file, read_bytes, read_lines, read_text, resolve


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def loop(path: Path) -> Path:
    path.symlink_to(path)
    return path


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda folder: folder / "none", "mine"),
        (lambda folder: folder, "mine"),
        (lambda folder: fifo(folder / "pipe"), "mine"),
        (lambda folder: Path("/dev/zero"), "mine"),
        (lambda folder: loop(folder / "loop"), "circle"),
        (lambda folder: folder / ("x" * 300), "shorter"),
        (lambda folder: folder / "a\0b", "mine"),
    ],
)
@pytest.mark.parametrize("read", [open_file, read_bytes, read_text, read_json, lambda *a: list(read_lines(*a))])
def test_only_a_regular_file_is_read(tmp_path: Path, make: object, advice: str, read: object) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    with pytest.raises(DataError) as caught:
        read(path, "mine")  # type: ignore[operator]
    assert str(path) in caught.value.cause and advice in caught.value.advice


@pytest.mark.parametrize("read", [read_bytes, read_text, read_json, lambda path: list(read_lines(path))])
def test_a_regular_file_that_would_block_is_reported(monkeypatch: pytest.MonkeyPatch, read: object) -> None:
    """As /proc/kmsg, which root alone may open."""
    start, end = os.pipe2(os.O_NONBLOCK)
    try:
        monkeypatch.setattr(untrusted, "_require_regular", lambda *arguments: None)
        with monkeypatch.context() as patch, pytest.raises(DataError, match=f"{__file__}: has nothing to read now"):
            patch.setattr(os, "open", lambda *arguments: start)
            read(Path(__file__))  # type: ignore[operator]
    finally:
        os.close(end)


def test_sizes_are_bounded(tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as out:
        out.write(b"{}\n")
        out.truncate(1 << 40)  # sparse
    with pytest.raises(DataError, match=f"{huge}: larger than 1 MiB"):
        read_bytes(huge, limit=1 << 20)
    lines = read_lines(huge)
    assert next(lines) == b"{}\n"
    with pytest.raises(DataError, match=f"{huge}:2: longer than {MAX_LINE_BYTES >> 20} MiB"):
        next(lines)


def test_an_error_in_json_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, message in ((b"{\n\xff", ":2: not JSON: byte 0xff"), (b"{\n1}", ":2: not JSON: Expecting"),
                             (b'{"a": 1, "a": 2}', "'a' occurs twice"), (b"[" * 100_000, "nested too deeply"),
                             (b"9" * 5000, "digits")):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_json(path)
        assert str(path) in caught.value.cause and message in caught.value.cause


@pytest.mark.parametrize("pair", ["[]", ('{"a":', "}")])
def test_the_depth_of_json_is_bounded_whatever_its_width(pair: tuple[str, str]) -> None:
    opening, closing = pair

    def nested(depth: int) -> str:
        return opening * depth + ("0" if closing == "}" else "") + closing * depth

    strict_json(nested(MAX_DEPTH))
    strict_json(f"[{','.join([nested(MAX_DEPTH - 1)] * 200)}]")
    with pytest.raises(ValueError, match="nested too deeply"):
        strict_json(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize(
    ("number", "code", "advice"),
    [
        (errno.ENOSPC, ExitCode.RUN_FAILED, "space"),
        (errno.EDQUOT, ExitCode.RUN_FAILED, "quota"),
        (errno.EMFILE, ExitCode.RUN_FAILED, "ulimit -n"),
        (errno.EACCES, ExitCode.USAGE, "permissions"),
        (errno.EROFS, ExitCode.USAGE, "read-only"),
        (errno.ELOOP, ExitCode.USAGE, "circle"),
        (errno.ENOENT, ExitCode.USAGE, "exists"),
        (errno.EINTR, ExitCode.RUN_FAILED, ""),
    ],
)
def test_an_errno_has_its_exit_code_and_advice(number: int, code: ExitCode, advice: str) -> None:
    error = from_os_error(OSError(number, os.strerror(number), "here"))
    assert error.code == code and error.cause.startswith("here: ")
    assert advice in error.advice and (number in (errno.ENOSPC, errno.EDQUOT) or "space" not in error.advice)


def test_a_file_is_written_whole_or_the_reason_is_reported(tmp_path: Path) -> None:
    """A regular file as the parent folder is an error even for root, and a FIFO is not replaced by a file."""
    write_atomic(tmp_path / "name", "a \udcff\n")
    assert (tmp_path / "name").read_text() == "a \\udcff\n"
    for path, advice in ((tmp_path / "name" / "below", "name another"), (fifo(tmp_path / "pipe"), "name another")):
        with pytest.raises(Exception) as caught:
            write_atomic(path, "text", unchanged="the old one stays")
        assert str(tmp_path) in str(caught.value) and advice in caught.value.advice.lower()  # type: ignore[attr-defined]
    assert (tmp_path / "pipe").is_fifo() and len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("name", ["", ".", "..", "/"])
def test_a_folder_without_a_name_is_no_file_to_write(name: str) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        require_writable(Path(name), "--out")
    with pytest.raises(UsageError, match="not a regular file"):
        write_atomic(Path(name), "text")


def test_a_circular_link_resolves_to_itself(tmp_path: Path) -> None:
    assert resolve(loop(tmp_path / "loop")) == tmp_path / "loop"


def test_src_never_calls_path_resolve(checkout: Project) -> None:
    """In Python 3.11 and 3.12 Path.resolve() raises RuntimeError for circular links."""
    code = "".join(path.read_text("utf-8") for path in checkout.root.joinpath("src").rglob("*.py"))
    assert not re.findall(r"(?<!\bmerge)\.resolve\(\)", code)  # of a Path: a merge of records has such a method too
