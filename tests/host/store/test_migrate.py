"""Records of schema 1: read as they are by all who read records, and never rewritten."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from records import STACK, as_schema1, make_record

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.consistency import device_faults
from tfdet.store.evidence import EvidenceStore
from tfdet.store.fast_records import read_record_lines, summarize
from tfdet.store.migrate import upgrade
from tfdet.store.records import parse
from tfdet_common import journal

H200 = {
    "device": "nvidia-h200",
    "ran_on": ["GPU:0"],
    "stack": {**STACK, "gpu": "NVIDIA H200", "driver": "550.54", "compute_capability": "9.0"},
}


def first(**changes: Any) -> dict[str, Any]:
    return as_schema1(make_record(**changes))


def written(record: dict[str, Any]) -> bytes:
    return (journal.dump(record) + "\n").encode()


@pytest.mark.parametrize("changes", [{}, H200, {"observation": "crashed"}])
def test_a_record_of_schema_1_says_the_same_in_schema_2(changes: dict[str, Any]) -> None:
    record = make_record(**changes)
    old = as_schema1(record)
    before = copy.deepcopy(old)
    assert {**upgrade(old), "checksum": ""} == {**record, "checksum": ""}
    assert old == before, "a pure function leaves what it is given as it is"
    assert upgrade(record) == record


def test_it_is_kept_byte_for_byte_beside_records_of_schema_2(tmp_path: Path) -> None:
    store, lines = EvidenceStore(tmp_path), [written(first(case="a")), written(make_record(case="b"))]
    store.ingest(parse(line) for line in reversed(lines))
    (path,) = store.files()
    assert path.read_bytes() == b"".join(lines)
    assert [record.schema_ for record in store.read(path)] == [2, 2]
    assert store.ingest(parse(line) for line in lines).duplicates == 2


def test_a_newer_measurement_in_schema_2_replaces_it(tmp_path: Path) -> None:
    store, newer = EvidenceStore(tmp_path), make_record(started="2026-02-01T00:00:00Z")
    for record in (first(), newer):
        store.ingest([parse(written(record))])
    assert store.files()[0].read_bytes() == written(newer)


@pytest.mark.parametrize("changes", [{}, H200])
def test_inference_sees_both_alike(checkout: Project, tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "records.jsonl"
    both = [first(**changes), make_record(**changes)]
    path.write_bytes(b"".join(map(written, both)))
    one, two = (
        row.record for row in read_record_lines(path, partial(device_faults, load_matrix(checkout.matrix).devices))
    )
    assert one.model == two.model == make_record(**changes)["device"]["model"]
    slow = summarize(parse(written(both[1])))
    assert [getattr(one, name) for name in slow.__struct_fields__ if name != "device"] == [
        getattr(slow, name) for name in slow.__struct_fields__ if name != "device"
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"device": "tpu"}, "neither cpu nor nvidia-MODEL"),
        ({"device": "nvidia"}, "neither cpu nor nvidia-MODEL"),
        ({"device": {"kind": "cpu", "model": "cpu"}}, "neither cpu nor nvidia-MODEL"),
        ({"device": None}, "neither cpu nor nvidia-MODEL"),
        ({"framework": {"name": "torch", "version": "2.13"}}, "schema 1 has no such field"),
        ({"stack": None}, "stack"),
        ({"stack": {}}, "framework.version"),
        ({"schema": 2}, "device"),
        ({"schema": 0}, "run the suite again"),
        ({"schema": 3}, "use a newer tfdet"),
        ({"schema": True}, "run the suite again"),
        ({"schema": "1"}, "run the suite again"),
    ],
)
def test_what_schema_1_never_said_is_refused(
    checkout: Project, tmp_path: Path, changes: dict[str, Any], fault: str
) -> None:
    record = {**first(), **changes}
    record["checksum"] = journal.checksum(record)
    with pytest.raises(ValueError, match=fault):
        parse(written(record))
    path = tmp_path / "records.jsonl"
    path.write_bytes(written(record))
    with pytest.raises(DataError):
        list(read_record_lines(path, partial(device_faults, load_matrix(checkout.matrix).devices)))


def test_a_device_of_schema_1_is_none_of_schema_2() -> None:
    record = {**make_record(), "schema": 1}
    record["checksum"] = journal.checksum(record)
    with pytest.raises(ValueError, match="no such field"):
        parse(json.dumps(record).encode())
