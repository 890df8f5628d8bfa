"""A record is identified by its checksum, which signatures name and which covers everything that a reader reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.errors import DataError
from tfdet.store.fast_records import read_record_lines
from tfdet.store.records import parse

Line = Callable[..., bytes]


def with_checksum(text: str) -> bytes:
    """Return a line whose first checksum matches its other bytes."""
    before, after = text.split('"checksum":"', 1)
    rest = after[64 + len('",') :]
    return f'{before}"checksum":"{hashlib.sha256((before + rest).encode()).hexdigest()}",{rest}\n'.encode()


def forged(genuine: bytes, kind: str) -> bytes:
    """Return a line with the genuine record's checksum and other content; its true checksum is a second field.

    kind: whether that field stands beside the genuine one, or in a nested object ("in a part").
    """
    content = {**json.loads(genuine), "observation": "crashed", "ran_on": []}
    if kind == "in a part":
        part = {"checksum": "0" * 64, "more": ""}
        content = {
            "determinism_environment": part,
            **{k: content[k] for k in content if k != "determinism_environment"},
        }
        return with_checksum(json.dumps(content, separators=(",", ":")))
    text = json.dumps(content, separators=(",", ":"))
    return with_checksum('{"checksum":"' + "0" * 64 + '",' + text[1:])


@pytest.mark.parametrize("kind", ["twice", "in a part"])
def test_the_verified_checksum_is_the_one_that_is_read(record_line: Line, tmp_path: Path, kind: str) -> None:
    """Signatures identify records by their checksums."""
    false = forged(record_line(), kind)
    with pytest.raises(ValueError, match=r"'checksum' occurs twice|its checksum does not fit"):
        parse(false)
    path = tmp_path / "tf2.0.jsonl"
    path.write_bytes(false)
    with pytest.raises(DataError, match=r"'checksum' occurs twice|its checksum does not fit"):
        list(read_record_lines(path))


def test_duplicate_fields_of_a_record_are_refused(record_line: Line) -> None:
    text = record_line().decode().strip()
    with pytest.raises(ValueError, match="'solution' occurs twice"):
        parse(with_checksum(text[:-1] + ',"solution":"TDO"}'))
