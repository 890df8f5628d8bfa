"""Trimming zeroes exactly the GPU code that no GPU of the host would choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from library_builders import cubin, element, fatbin, library, ptx

from tfdet.audit.scan import scan_library
from tfdet.base.errors import DataError
from tfdet.bundle.trim import find_blanked_spans, read_blanked

PTX, SASS = 1, 2


def marker_presence(path: Path, capability: tuple[int, int]) -> dict[str, bool]:
    """Return {marker: whether it is still there}; each payload repeats one letter."""
    trimmed = bytes(read_blanked(path, 0, path.stat().st_size, find_blanked_spans(path, capability).spans))
    content = path.read_bytes()
    return {letter: letter.encode() * 64 in trimmed for letter in "abcde" if letter.encode() * 64 in content}


def write_library(tmp_path: Path, *fatbins: list[tuple[int, int, str]]) -> Path:
    """Write a library of fatbins: lists of (kind, architecture, letter that fills the payload); return its path."""
    path = tmp_path / "library.so"
    members = [
        fatbin(*(element(kind, arch, letter.encode() * 64) for kind, arch, letter in elements)) for elements in fatbins
    ]
    path.write_bytes(library(b"".join(members)))
    return path


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((9, 0), "c"),  # its own machine code, no PTX beside it
        ((7, 0), "a"),
        ((7, 5), "a"),  # machine code of a lower minor runs
        ((8, 6), "b"),
        ((10, 0), "d"),  # no machine code of its major version: the newest PTX that it can compile
        ((6, 0), ""),
    ],
)
def test_the_drivers_choice_is_kept(tmp_path: Path, capability: tuple[int, int], expected: str) -> None:
    path = write_library(tmp_path, [(SASS, 70, "a"), (SASS, 80, "b"), (SASS, 90, "c"), (PTX, 90, "d"), (PTX, 70, "e")])
    remaining = marker_presence(path, capability)
    assert "".join(letter for letter, is_kept in remaining.items() if is_kept) == expected


def test_each_fatbin_is_trimmed_by_itself(tmp_path: Path) -> None:
    path = write_library(
        tmp_path, [(SASS, 70, "a"), (SASS, 90, "b")], [(SASS, 80, "c"), (PTX, 80, "d")], [(SASS, 90, "e")]
    )
    assert marker_presence(path, (9, 0)) == {"a": False, "b": True, "c": False, "d": True, "e": True}


def test_nothing_moves_and_nothing_else_changes(tmp_path: Path) -> None:
    path = write_library(tmp_path, [(SASS, 70, "a"), (SASS, 90, "b")])
    spans = find_blanked_spans(path, (9, 0))
    before, after = path.read_bytes(), bytes(read_blanked(path, 0, path.stat().st_size, spans.spans))
    assert len(before) == len(after)
    different = [offset for offset in range(len(before)) if before[offset] != after[offset]]
    (span,) = spans.spans
    assert (different[0], different[-1] + 1) == span
    assert spans.code == span[1] - span[0] == 64


def test_the_audit_finds_only_the_kept_architecture(tmp_path: Path) -> None:
    """The scanner finds the atomics of the kept architecture, and none of the others'."""
    path = tmp_path / "library.so"
    machine_code = [element(SASS, arch, cubin(arch)) for arch in (70, 80, 90)]
    path.write_bytes(library(fatbin(*machine_code, element(PTX, 90, ptx()))))
    trimmed = tmp_path / "trimmed.so"
    trimmed.write_bytes(read_blanked(path, 0, path.stat().st_size, find_blanked_spans(path, (9, 0)).spans))
    before, after = scan_library(path, "library").kernels, scan_library(trimmed, "library").kernels
    assert {kernel.arch for kernel in before} >= {"sm_70", "sm_80", "sm_90"}
    assert list(after) == [kernel for kernel in before if kernel.arch == "sm_90"]


def test_unreadable_gpu_code_is_refused_when_trimming(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(library(fatbin(element(SASS, 70, b"a" * 64)) + b"damage!!" * 8))
    with pytest.raises(DataError, match=r"library\.so: GPU code at offset \d+ cannot be read"):
        find_blanked_spans(path, (9, 0))
    assert find_blanked_spans(path, None).code == 0


def test_bytes_between_the_elements_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    between = bytes(range(1, 65))
    content = fatbin(element(SASS, 100, b"a" * 64)) + between + fatbin(element(SASS, 90, b"b" * 64))
    path.write_bytes(library(content, b".cask_resource"))
    assert marker_presence(path, (9, 0)) == {"a": False, "b": True}
    assert between in bytes(read_blanked(path, 0, path.stat().st_size, find_blanked_spans(path, (9, 0)).spans))


def test_a_file_that_is_no_library_stays_unchanged(tmp_path: Path) -> None:
    for content in (b"", b"INPUT(libc.so.6)\n", b"\x7fELF"):
        path = tmp_path / "script.so"
        path.write_bytes(content)
        assert find_blanked_spans(path, (9, 0)).spans == ()
