"""Bytes as strangers make them: what a reader knows, with something in it that nobody writes by accident."""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# TFDET_FUZZ=20000 for a long run, which begins anywhere.
EXAMPLES = int(os.environ.get("TFDET_FUZZ", "40"))
fuzzed = settings(
    max_examples=EXAMPLES, derandomize="TFDET_FUZZ" not in os.environ, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

# As they stand in a document. Python's json writes the last three of itself.
_RAW = {
    "deep list": "[" * 3000 + "]" * 3000, "deep object": '{"a":' * 3000 + "0" + "}" * 3000, "open": "[" * 100_000,
    "digits": "9" * 5000, "large": "1e999", "half": '"\\ud800"', "not a number": "NaN", "infinite": "-Infinity",
}  # fmt: skip
_VALUES: list[Any] = [None, True, False, 0, -1, 2**31, 2**63, 2**64, 0.5, "", " ", "\0", "\x1b[2J", "é" * 200, "../x",
                      [], {}, [[]], [None], {"": None}, [0] * 50, "0" * 5000]  # fmt: skip


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here]
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:8]):
            found += _places(inner, (*here, key))
    return found


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    made = value.copy()
    made[place[0]] = _with(value[place[0]], place[1:], new)
    return made


@st.composite
def documents(draw: st.DrawFn, seed: Any) -> bytes:
    """JSON like `seed`, one or two values replaced, a field said twice or missing, or its bytes damaged."""
    value, raw = seed, {}
    for number in range(draw(st.integers(1, 2))):
        places = _places(value)
        new = draw(st.sampled_from([*_RAW, *map(json.dumps, _VALUES)]))
        mark = f"@{number}@"
        raw[mark] = _RAW.get(new, new)
        value = _with(value, draw(st.sampled_from(places)), mark)
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
    """A few bytes changed, cut out, doubled or put in."""
    data = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        how = draw(st.integers(0, 4))
        size = draw(st.integers(1, 16))
        if how == 0 and data:
            data[at] = draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x5C, 0x7B]))
        elif how == 1:
            del data[at : at + size]
        elif how == 2:
            data[at:at] = data[at : at + size]
        elif how == 3:
            data[at:at] = draw(st.binary(min_size=1, max_size=8))
        else:
            del data[at:]
    return bytes(data)


def block(tag: bytes, payload: bytes) -> bytes:
    """Of a trace file, its sum right."""
    head = struct.pack("<4sI", tag, len(payload))
    return head + struct.pack("<I", zlib.crc32(payload, zlib.crc32(head)) & 0xFFFFFFFF) + payload


def blocks(content: bytes) -> list[tuple[bytes, bytes]]:
    """(tag, payload) of each block of a trace file."""
    at, found = 16, []
    while at < len(content):
        tag, size = struct.unpack_from("<4sI", content, at)
        found.append((tag, content[at + 12 : at + 12 + size]))
        at += 12 + size
    return found
