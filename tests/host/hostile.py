"""Hypothesis strategies for untrusted bytes:

valid input with damaged or adversarial parts. TFDET_FUZZ sets the number of examples.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# TFDET_FUZZ=20000 for a long run, whose examples are random.
EXAMPLES = int(os.environ.get("TFDET_FUZZ", "40"))
fuzzed = settings(
    max_examples=EXAMPLES, derandomize="TFDET_FUZZ" not in os.environ, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

# {name: text that replaces a value in a JSON document}: what a parser may fail on.
_RAW = {
    "deep list": "[" * 3000 + "]" * 3000, "deep object": '{"a":' * 3000 + "0" + "}" * 3000, "open": "[" * 100_000,
    "digits": "9" * 5000, "large": "1e999", "half": '"\\ud800"', "not a number": "NaN", "infinite": "-Infinity",
}  # fmt: skip
_VALUES: list[Any] = [None, True, False, 0, -1, 2**31, 2**63, 2**64, 0.5, "", " ", "\0", "\x1b[2J", "é" * 200, "../x",
                      [], {}, [[]], [None], {"": None}, [0] * 50, "0" * 5000]  # fmt: skip


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path, as keys and indices, of every value in a JSON document."""
    paths = [path]
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:8]):
            paths += _paths(inner, (*path, key))
    return paths


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the document with another value at the path."""
    if not path:
        return new
    copied = value.copy()
    copied[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copied


@st.composite
def documents(draw: st.DrawFn, seed: Any) -> bytes:
    """JSON like `seed` with one or two values replaced, a field duplicated or removed, or damaged bytes."""
    value, raw = seed, {}
    for number in range(draw(st.integers(1, 2))):
        paths = _paths(value)
        new = draw(st.sampled_from([*_RAW, *map(json.dumps, _VALUES)]))
        mark = f"@{number}@"
        raw[mark] = _RAW.get(new, new)
        value = _replaced(value, draw(st.sampled_from(paths)), mark)
    text = json.dumps(value)
    for mark, new in raw.items():
        text = text.replace(f'"{mark}"', new)
    if draw(st.integers(0, 9)) == 0:
        return draw(damaged(text.encode()))
    if draw(st.integers(0, 9)) == 0 and text.startswith("{"):
        return (text[:-1] + "," + text[1:]).encode()
    return text.encode()


@st.composite
def damaged(draw: st.DrawFn, seed: bytes) -> bytes:
    """`seed` with a few bytes changed, removed, duplicated or inserted."""
    data = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, max(len(data) - 1, 0)))
        how = draw(st.integers(0, 4))
        size = draw(st.integers(1, 16))
        if how == 0 and data:
            data[position] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x5C, 0x7B]))
        elif how == 1:
            del data[position : position + size]
        elif how == 2:
            data[position:position] = data[position : position + size]
        elif how == 3:
            data[position:position] = draw(st.binary(min_size=1, max_size=8))
        else:
            del data[position:]
    return bytes(data)


def block(tag: bytes, payload: bytes) -> bytes:
    """Return one block of a trace file, with a right checksum."""
    head = struct.pack("<4sI", tag, len(payload))
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head)) & 0xFFFFFFFF) + payload


def blocks(content: bytes) -> list[tuple[bytes, bytes]]:
    """Return (tag, payload) of each block of a trace file."""
    position, parsed = 16, []  # after the file's header
    while position < len(content):
        tag, size = struct.unpack_from("<4sI", content, position)
        parsed.append((tag, content[position + 12 : position + 12 + size]))
        position += 12 + size
    return parsed
