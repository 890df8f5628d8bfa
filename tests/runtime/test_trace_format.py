"""Trace files are readable up to any cut, and foreign files are rejected. Digests in NumPy."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy
import pytest
from synthetic import write_trace

from tfdeterminism.trace.capture import digest
from tfdeterminism.trace.schema import format as trace_format
from tfdeterminism.trace.schema.reader import load
from tfdeterminism.trace.schema.writer import Writer


@pytest.fixture
def trace_path(tmp_path: Path) -> Path:
    """Write a trace of 5 steps and 8 ops; return its path."""
    write_trace(str(tmp_path / "trace-0.tfdt"), steps=5, ops=8)
    return tmp_path / "trace-0.tfdt"


def test_a_trace_is_read_back_as_it_was_written(trace_path: Path) -> None:
    trace = load(str(trace_path))
    assert (len(trace.records), trace.damage, trace.end["records"]) == (40, None, 40)
    assert trace.definitions[3]["inputs"] == [2]
    assert trace.records["step"].tolist() == [step for step in range(5) for _ in range(8)]


def test_a_trace_cut_at_any_byte_is_read_up_to_there(trace_path: Path) -> None:
    complete, data = load(str(trace_path)), trace_path.read_bytes()
    readable = 0
    for size in range(0, len(data), 5):
        trace_path.write_bytes(data[:size])
        try:
            trace = load(str(trace_path))
        except trace_format.TraceFormatError:
            assert readable == 0
            continue
        readable += 1
        assert trace.end is None
        assert trace.records.tobytes() == complete.records[: len(trace.records)].tobytes()
    assert readable > 100


def test_a_changed_byte_is_noticed(trace_path: Path) -> None:
    complete, data = load(str(trace_path)), trace_path.read_bytes()
    for position in range(16, len(data), 29):
        trace_path.write_bytes(data[:position] + bytes([data[position] ^ 64]) + data[position + 1 :])
        try:
            trace = load(str(trace_path))
        except trace_format.TraceFormatError:
            continue
        assert trace.damage is not None
        assert trace.records.tobytes() == complete.records[: len(trace.records)].tobytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a trace"),
        (b"PK\x03\x04" * 9, "not a trace"),
        (trace_format.MAGIC, "before its header"),
        (trace_format.MAGIC + struct.pack("<II", trace_format.SCHEMA + 1, 0), "newer one"),
        (trace_format.MAGIC + struct.pack("<II", 1, 0), "record it again"),
        (trace_format.MAGIC + struct.pack("<II", trace_format.SCHEMA, 0), "before its header"),
    ],
)
def test_foreign_and_newer_files_are_refused_with_advice(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.tfdt").write_bytes(data)
    with pytest.raises(trace_format.TraceFormatError, match=message) as raised:
        load(str(tmp_path / "x.tfdt"))
    assert raised.value.advice


def test_a_compression_bomb_is_not_unpacked(tmp_path: Path) -> None:
    writer = Writer(str(tmp_path / "bomb.tfdt"), {})
    writer._block(b"DEFS", zlib.compress(b" " * (200 << 20), 9))
    writer.close()
    assert load(str(tmp_path / "bomb.tfdt")).damage is not None


def test_an_existing_file_is_not_overwritten(trace_path: Path) -> None:
    with pytest.raises(FileExistsError):
        Writer(str(trace_path), {})


@pytest.mark.parametrize("digest_of", [digest.digest_array, digest.weighted_sum])
def test_every_mutation_changes_the_digest(digest_of) -> None:
    rng = numpy.random.default_rng(0)
    for kind in ("f2", "f4", "f8", "i1", "i4", "u8", "c8", "?"):
        array = (rng.normal(size=24) * 9).astype(kind) if kind != "?" else rng.integers(0, 2, 24).astype(kind)
        by_bytes = {array.tobytes(): digest_of(array)}
        for _ in range(150):
            copy = array.copy()
            one, two = rng.integers(24, size=2)
            mutation = rng.integers(4)
            if mutation == 0 and kind != "?":
                copy.view(numpy.uint8)[rng.integers(copy.nbytes)] ^= 1 << rng.integers(8)
            elif mutation == 1:
                copy[[one, two]] = copy[[two, one]]
            elif mutation == 2:
                copy = numpy.roll(copy, one)
            else:
                copy = copy[: one + 1]
            by_bytes[copy.tobytes()] = digest_of(copy)
        assert len(set(by_bytes.values())) == len(by_bytes)


def test_the_digest_separates_strings() -> None:
    values = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""]]
    assert len({digest.digest_array(numpy.array(strings, object)) for strings in values}) == 4
