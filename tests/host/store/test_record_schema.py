"""Records of other schemas than this tfdet's are rejected with advice for the version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from records import make_record

from tfdet.base.errors import DataError
from tfdet.store.fast_records import read_record_lines
from tfdet.store.records import parse
from tfdet_common import journal


@pytest.mark.parametrize(
    ("changes", "fault"),  # this tfdet's schema is 2
    [
        ({"schema": 0}, "run the suite again"),
        ({"schema": 1}, "run the suite again"),
        ({"schema": 1, "device": "cpu"}, "run the suite again"),
        ({"schema": 3}, "use a newer tfdet"),
        ({"schema": True}, "run the suite again"),
        ({"schema": "2"}, "run the suite again"),
        ({"device": "cpu"}, "device"),
        ({"framework": None}, "framework"),
    ],
)
def test_another_schema_is_refused(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    record = {**make_record(), **changes}
    record["checksum"] = journal.checksum(record)
    line = (journal.dump(record) + "\n").encode()
    with pytest.raises(ValueError, match=fault):
        parse(line)
    path = tmp_path / "records.jsonl"
    path.write_bytes(line)
    with pytest.raises(DataError, match=fault):
        list(read_record_lines(path))
