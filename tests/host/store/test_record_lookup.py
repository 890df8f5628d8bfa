"""Looking up records by checksum: little memory for many, and no false match on a common prefix."""

from __future__ import annotations

import hashlib
import tracemalloc
from pathlib import Path

import pytest
from records import make_record

from tfdet.store import record_lookup
from tfdet.store.fast_records import RecordLine, read_line
from tfdet.store.record_lookup import ChecksumIndex, RecordFiles, RecordSpool
from tfdet_common import journal

LINES = [(journal.dump(make_record(case=f"case-{number}")) + "\n").encode("ascii") for number in range(40)]
ROWS = [RecordLine(read_line(line), line) for line in LINES]


@pytest.fixture(params=[False, True], ids=["apart", "equal_prefixes"])
def equal_prefixes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the real prefixes of checksums, and with one prefix for all."""
    if request.param:
        monkeypatch.setattr(record_lookup, "_prefix", lambda checksum: 7)


@pytest.mark.usefixtures("equal_prefixes")
def test_a_record_is_listed_once_and_found_by_checksum(tmp_path: Path) -> None:
    spool = RecordSpool([*ROWS, *reversed(ROWS)])
    assert [row.line for row in spool] == LINES
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"no record\n" + b"".join(LINES))
    with RecordFiles([tmp_path / "none.jsonl", path]) as files:
        for find in (spool, files):
            assert [find(row.record.checksum) for row in ROWS] == LINES
            assert find("0" * 64) is None


@pytest.mark.usefixtures("equal_prefixes")
def test_a_spool_can_be_iterated_and_queried_together() -> None:
    spool = RecordSpool(ROWS)
    assert [(row.line, spool(ROWS[0].record.checksum)) for row in spool] == [(line, LINES[0]) for line in LINES]


def test_a_record_in_the_index_takes_few_bytes() -> None:
    digests = (hashlib.sha256(b"%d" % number).digest() for number in range(20_000))
    tracemalloc.start()
    index = ChecksumIndex((checksum, number) for number, checksum in enumerate(digests))
    used_bytes, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < 20_000 * 24
    assert peak_bytes < 20_000 * 32, "building the index takes more than the index"
    assert list(index(hashlib.sha256(b"77").digest())) == [77]
