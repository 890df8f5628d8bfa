"""Damaged and forged traces are compared or rejected, never with a traceback.

The environment variable TRACE_MUTANTS says how many of them are tried.
"""

from __future__ import annotations

import io
import json
import os
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from traces import TraceBuilder

from tfdet.base.errors import DataError
from tfdet.engines import locate
from tfdet.publish import locate_page
from tfdeterminism.trace.commands import diff
from tfdeterminism.trace.schema.format import FILE_PREFIX

COUNT = int(os.environ.get("TRACE_MUTANTS", "200"))
ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    7,
    1 << 70,
    1e300,
    "",
    "x",
    "\u202e",  # right-to-left override, which no output may contain
    [],
    [None],
    [[]],
    [["x", 1]],
    {},
    {"x": None},
]


def _program(builder: TraceBuilder, run: int) -> None:
    """Write a trace with a loop, a call, a variable and a feed; the second run differs from step 1 on.

    It has whole values, too: of the culprit, and of an op without a name.
    """
    feed = builder.op("feed", "Placeholder", kind="feed")
    read = builder.op("read", "ReadVariableOp", kind="read", variable="w")
    body = builder.op("body", "MatMul", (feed, read), function="body", attrs={"unordered": "in any order"})
    call = builder.op("while", "While", (body,), kind="call", calls=[["body", 0]])
    write = builder.op("write", "AssignSubVariableOp", (call,), kind="write", variable="w", output=-1)
    eager = builder.eager("train.py:9#0", "AddV2", (call,), stack=[["train.py", 9, "train"]])
    builder._writer.source({"train.py": {9: "total = a + b"}})
    for step in range(3):
        bad = run if step else 0
        builder.value(numpy.float32([bad, numpy.inf * step]), step, key=call, name="while", role="culprit")
        builder.value(numpy.float32(bad), step)
        for key in (feed, read, body, body, call, eager):
            builder.record(key, (step, bad), step)
        builder.write(write, step)


def _blocks(data: bytes) -> list[tuple[bytes, bytes]]:
    parsed, offset = [], FILE_PREFIX.size
    while offset < len(data):
        tag, size, _ = struct.unpack_from("<4sII", data, offset)
        parsed.append((tag, data[offset + 12 : offset + 12 + size]))
        offset += 12 + size
    return parsed


def _joined(prefix: bytes, blocks: list[tuple[bytes, bytes]]) -> bytes:
    """Join blocks with right checksums, so that only their content is wrong."""
    out = prefix
    for tag, payload in blocks:
        head = struct.pack("<4sI", tag, len(payload))
        out += head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head))) + payload
    return out


def _other(value: Any, rng: random.Random) -> Any:
    """Return the value with one part replaced, removed or inserted."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        remaining = {name: item for name, item in value.items() if name != key}
        return remaining if rng.random() < 0.1 else {**remaining, key: _other(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        index = rng.randrange(len(value))
        return [*value[:index], _other(value[index], rng), *value[index + 1 :]]
    return rng.choice(ODD_VALUES)


def _mutant(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:  # any bytes
        position = rng.randrange(len(data))
        return rng.choice([data[:position], data[:position] + bytes([rng.randrange(256)]) + data[position + 1 :],
                              data[:position] + data[position // 2 :]])  # fmt: skip
    blocks = _blocks(data)  # DEFS: compressed JSON; RECS: fixed-size records; VALS: JSON and bytes; others: JSON
    index = rng.randrange(len(blocks))
    tag, payload = blocks[index]
    if tag == b"VALS" and rng.random() < 0.7:
        (size,) = struct.unpack_from("<I", payload)
        text = json.dumps(_other(json.loads(payload[4 : 4 + size]), rng)).encode()
        payload = struct.pack("<I", len(text)) + text + payload[4 + size :]
    elif tag in (b"RECS", b"VALS"):
        position = rng.randrange(len(payload))
        payload = payload[:position] + bytes([rng.randrange(256)]) + payload[position + 1 :]
    else:
        text = zlib.decompress(payload) if tag == b"DEFS" else payload
        text = json.dumps(_other(json.loads(text), rng)).encode()
        payload = zlib.compress(text) if tag == b"DEFS" else text
    blocks[index] = (tag, payload)
    if rng.random() < 0.2:
        rng.shuffle(blocks)
    return _joined(data[: FILE_PREFIX.size], blocks)


def test_no_damaged_trace_raises(make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    intact = [make(_program, run) for run in range(2)]
    assert diff.main([str(path) for path in intact], out=io.StringIO()) == 1
    for number in range(COUNT):
        rng = random.Random(number)
        mutant = tmp_path / "mutant.tfdt"
        mutant.write_bytes(_mutant(intact[number % 2].read_bytes(), rng))
        pair = [str(mutant), str(intact[rng.randrange(2)])]
        rng.shuffle(pair)
        output, options = io.StringIO(), ["--json"] if number % 2 else []
        code = diff.main([*pair, *options], out=output)
        assert code in (0, 1, 2), number  # 2: the trace is rejected
        if code != 2 and options:
            json.loads(output.getvalue())
        stderr = capsys.readouterr().err
        assert "\u202e" not in stderr + output.getvalue()
        if number % 4 == 0:
            _describe(pair, code)


def _describe(pair: list[str], code: int) -> None:
    """The host shows the comparison, or rejects it as well."""
    try:
        page = locate_page.html(locate.compare(pair))
    except DataError:
        assert code == 2
    else:
        assert code != 2
        assert "\u202e" not in page
