"""The store loses no record, accepts no invalid one, and reports conflicts."""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from records import STACK, device_of, proof_of

from tfdet.base.errors import DataError, ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.evidence import EvidenceStore
from tfdet.store.records import Record, is_intact, parse, read_records
from tfdet.store.signatures import AttestationStore
from tfdet.verdicts.status_loading import _infer_partition

Line = Callable[..., bytes]  # record_line(observation, **fields): the line of a valid record with these fields


@pytest.fixture
def store(tmp_path: Path) -> EvidenceStore:
    """An empty store."""
    return EvidenceStore(tmp_path / "evidence")


def lines(store: EvidenceStore) -> list[bytes]:
    """Return all lines of the store's files."""
    return [line for path in store.files() for line in path.read_bytes().splitlines(keepends=True)]


def test_a_stored_record_is_read_back_byte_for_byte(store: EvidenceStore, record_line: Line) -> None:
    assert store.ingest([parse(record_line())]).ingested == 1
    assert lines(store) == [record_line()]
    assert store.files() == [store.path("cpu", "tf2.0")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"observation":"equal"', b'"observation":"differs"'),
        (b'"differed":0', b'"differed":1'),
        (b'"solution":"none"', b'"solution":"TDO"'),
        (b'"median_seconds":0.25', b'"median_seconds":0.24'),
        (b',"differed"', b', "differed"'),
    ],
)
def test_a_record_changed_by_hand_is_refused(record_line: Line, before: bytes, after: bytes) -> None:
    changed = record_line().replace(before, after)
    assert changed != record_line()
    assert not is_intact(changed, json.loads(record_line())["checksum"])
    with pytest.raises(ValueError, match="checksum"):
        parse(changed)


def test_another_schema_is_refused_with_advice(record_line: Line) -> None:
    with pytest.raises(ValueError, match="use a newer tfdet"):
        parse(record_line(schema=3))
    with pytest.raises(ValueError, match="run the suite again"):
        parse(record_line(schema=0))


def test_every_fault_of_a_file_is_named_with_its_line(tmp_path: Path, record_line: Line) -> None:
    broken = json.loads(record_line())
    broken.update(runs=-1, observation="maybe", surprise=1)
    path = tmp_path / "records.jsonl"
    path.write_bytes(record_line() + b"{torn\n" + json.dumps(broken).encode() + b"\n")
    with pytest.raises(DataError) as caught:
        list(read_records(path))
    text = caught.value.cause
    assert f"{path}:2:" in text
    assert all(word in text for word in (f"{path}:3:", "runs", "observation", "surprise"))


@pytest.mark.parametrize(
    "content", [b"\x7fELF\xff\xfe\x00", '{"schema": 1}'.encode("utf-16"), b"hello", b"\n", b'"\xc3"']
)
def test_invalid_utf8_and_json_are_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"records\.jsonl:1: no (text|JSON object), so no record$"):
        list(read_records(path))


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        list(read_records(tmp_path / "nowhere.jsonl"))


def test_a_record_added_twice_is_stored_once(store: EvidenceStore, record_line: Line) -> None:
    store.ingest([parse(record_line())])
    assert store.ingest([parse(record_line())]).duplicates == 1
    assert len(lines(store)) == 1


@pytest.fixture
def package_data(tmp_path: Path, record_line: Line) -> Path:
    """Evidence of an installed tfdet: one record in a read-only folder."""
    folder = tmp_path / "brought"
    EvidenceStore(folder).ingest([parse(record_line(machine="a" * 12))])
    return folder


def test_packaged_evidence_is_read_and_never_written(package_data: Path, tmp_path: Path, record_line: Line) -> None:
    (file,) = EvidenceStore(package_data).files()
    before, store = file.read_bytes(), EvidenceStore(package_data, tmp_path / "own")
    added = store.ingest([parse(record_line(machine="a" * 12)), parse(record_line("differs", machine="b" * 12))])
    assert (added.ingested, added.duplicates, len(added.conflicts)) == (1, 1, 1)
    assert store.path("cpu", "tf2.0").read_bytes() == record_line("differs", machine="b" * 12)
    assert file.read_bytes() == before
    assert store.files() == [file, store.path("cpu", "tf2.0")]
    assert lines(store) == [before, record_line("differs", machine="b" * 12)]


def test_a_record_in_packaged_and_own_evidence_counts_once(
    checkout: Project, package_data: Path, tmp_path: Path, record_line: Line
) -> None:
    own_folder, record = tmp_path / "own", parse(record_line(machine="a" * 12))
    EvidenceStore(own_folder).ingest([record])
    devices, hashes = load_matrix(checkout.matrix).devices, {record.source: {record.case_hash}}
    store = EvidenceStore(package_data, own_folder)
    judged = _infer_partition(store, devices, hashes, frozenset(), (store.files(), []))
    assert {cell.runs for cell in judged.values()} == {record.runs}


def test_records_of_two_machines_are_kept_and_their_conflict_is_reported(
    store: EvidenceStore, record_line: Line
) -> None:
    store.ingest([parse(record_line("equal", machine="a" * 12))])
    added = store.ingest([parse(record_line("differs", machine="b" * 12))])
    assert len(lines(store)) == 2
    assert len(added.conflicts) == 1
    assert "a" * 12 in added.conflicts[0]
    assert "b" * 12 in added.conflicts[0]
    assert not store.ingest([parse(record_line("equal", machine="c" * 12, solution="TDO"))]).conflicts


def test_contradictory_records_of_one_machine_are_both_kept(store: EvidenceStore, record_line: Line) -> None:
    store.ingest([parse(record_line("differs"))])
    added = store.ingest([parse(record_line("equal", started="2026-02-01T00:00:00Z"))])
    assert len(lines(store)) == 2
    assert added.conflicts


def test_a_run_with_a_proof_stands_beside_the_runs_without(store: EvidenceStore, record_line: Line) -> None:
    """A proof has one run, so it replaces no record of many runs."""
    plain, proved = (
        record_line(started="2026-02-01T00:00:00Z"),
        record_line(proof=proof_of(True), started="2026-01-01T00:00:00Z"),
    )
    for record in (plain, proved):
        assert store.ingest([parse(record)]).ingested == 1
    newer = record_line(proof=proof_of(False), started="2026-03-01T00:00:00Z")
    assert store.ingest([parse(newer)]).replaced == 1
    assert sorted(lines(store)) == sorted([plain, newer])


# Details of the virtual GPU that a user can choose; sass: machine code; placement: a seed for addresses of allocations.
CHOICES: list[dict[str, Any]] = [
    {"code": ["sass"], "chosen_code": "sass"}, {"multiprocessors": 108}, {"placement": 1}
]  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: list(choice)[-1])
def test_records_of_a_choice_stand_beside_those_of_the_default(
    store: EvidenceStore, record_line: Line, choice: dict[str, Any]
) -> None:
    """Records of machine code and PTX, or of devices of two sizes, do not replace each other."""
    details = {"reference": "serial", "schedules": [], "sources": "0" * 12, "code": ["ptx"]}
    vgpu = {"device": {**device_of("vgpu-sm80"), "details": details}, "ran_on": ["GPU:0"]}
    device = {**vgpu["device"], "details": {**details, **choice}}
    default, chosen = record_line(**vgpu), record_line(device=device, ran_on=["GPU:0"], started="2026-02-01T00:00:00Z")
    for record in (default, chosen):
        assert store.ingest([parse(record)]).ingested == 1
    newer = record_line(**vgpu, started="2026-03-01T00:00:00Z")
    assert store.ingest([parse(newer)]).replaced == 1
    assert sorted(lines(store)) == sorted([chosen, newer])


@pytest.mark.parametrize("proved", [True, False])
def test_only_a_proof_contradicts_a_difference(store: EvidenceStore, record_line: Line, proved: bool) -> None:
    store.ingest([parse(record_line("differs"))])
    assert bool(store.ingest([parse(record_line("equal", proof=proof_of(proved)))]).conflicts) is proved


def test_a_newer_record_replaces_an_equal_older_one(store: EvidenceStore, record_line: Line) -> None:
    older, newer = record_line(started="2026-01-01T00:00:00Z"), record_line(started="2026-02-01T00:00:00Z")
    store.ingest([parse(older)])
    assert store.ingest([parse(newer)]).replaced == 1
    assert store.ingest([parse(older)]).duplicates == 1
    assert lines(store) == [newer]


def test_fewer_runs_never_replace_more(store: EvidenceStore, record_line: Line) -> None:
    strong = record_line()
    weak = record_line(started="2026-02-01T00:00:00Z", repeats=5, digests=["a" * 64], runs=5)
    store.ingest([parse(strong)])
    assert store.ingest([parse(weak)]).duplicates == 1
    assert lines(store) == [strong]


def test_records_of_two_software_stacks_of_a_machine_are_both_kept(store: EvidenceStore, record_line: Line) -> None:
    store.ingest([parse(record_line()), parse(record_line(stack={**STACK, "engine": "docker"}))])
    assert len(lines(store)) == 2


def test_a_record_of_an_older_case_never_replaces_a_current_one(suite: EvidenceStore, record_line: Line) -> None:
    current = record_line("differs", case_hash="1" * 16, started="2026-03-01T00:00:00Z")
    old = record_line("equal", case_hash="0" * 16, started="2026-01-01T00:00:00Z")
    for order in ([current, old], [old, current]):
        for content in order:
            suite.ingest([parse(content)])
        assert lines(suite) == [current]


def test_a_record_twice_in_a_file_or_out_of_order_is_reported(store: EvidenceStore, record_line: Line) -> None:
    store.ingest([parse(record_line(case=name)) for name in ("a", "b")])
    (path,) = store.files()
    first, two = path.read_bytes().splitlines(keepends=True)
    for text in (first + first + two, two + first):
        path.write_bytes(text)
        with pytest.raises(DataError, match="twice, or out of its order"):
            list(store.read(path))


def test_all_files_or_none_are_written(store: EvidenceStore, record_line: Line) -> None:
    broken = store.path("cpu", "tf2.1")
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"{}\n")
    with pytest.raises(DataError):
        store.ingest([parse(record_line()), parse(record_line(environment="tf2.1"))])
    assert store.files() == [broken]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"device": {"kind": "cpu", "model": "cpu2"}}, "not the key of a device of kind cpu"),
        ({"device": {"kind": "cpu", "model": "cpu", "clock": 3}}, "device.clock"),
        ({"runs": 0}, "equal, but runs differed or are missing"),
        ({"differed": 3}, "equal, but runs differed or are missing"),
        ({"runs": 99}, "more runs than"),
        ({"observation": "differs", "differed": 0}, "differs, but no run differed"),
        ({"observation": "crashed", "error": None}, "no error either"),
        ({"median_seconds": -1.0}, "median_seconds"),
        ({"started": "9999-99-99T99:99:99Z"}, "not a possible time"),
        ({"started": "2999-01-01T00:00:00Z"}, "not a possible time"),
        ({"ran_on": ["CPU:0\x1b[31m"]}, "ran_on"),
        ({"environment": "../../etc/passwd"}, "environment"),
        ({"median_seconds": 1e300}, "not a possible duration"),
        ({"median_seconds": 1e-300}, "not a possible duration"),
    ],
)
def test_a_record_that_no_run_can_produce_is_refused(record_line: Line, changes: dict[str, Any], fault: str) -> None:
    if "stack" in changes:
        changes = {**changes, "stack": {**STACK, **changes["stack"]}}
    with pytest.raises(ValueError, match=fault):
        parse(record_line(**changes))


@pytest.fixture
def suite(tmp_path: Path, record_line: Line) -> EvidenceStore:
    """A store whose suite has the case under the hash 1111111111111111; records with another hash are stale."""
    return EvidenceStore(tmp_path / "evidence", hashes=lambda: {parse(record_line()).source: {"1" * 16}})


def stored_keys(store: EvidenceStore) -> set[tuple[str, str]]:
    """Return the (machine, case hash) pairs of the stored records."""
    return {(r.machine, r.case_hash) for path in store.files() for r in read_records(path)}


def test_a_record_of_a_changed_case_replaces_the_stale_one_of_its_machine(
    suite: EvidenceStore, record_line: Line
) -> None:
    suite.ingest(
        [
            parse(record_line(machine="a" * 12, case_hash="0" * 16)),
            parse(record_line(machine="b" * 12, case_hash="0" * 16)),
        ]
    )
    suite.ingest([parse(record_line(machine="a" * 12, case_hash="1" * 16, started="2026-02-01T00:00:00Z"))])
    assert stored_keys(suite) == {("a" * 12, "1" * 16), ("b" * 12, "0" * 16)}


def test_a_record_of_an_unknown_case_hash_replaces_nothing(suite: EvidenceStore, record_line: Line) -> None:
    """Anyone may write such a record, with any machine and date."""
    suite.ingest([parse(record_line(case_hash="1" * 16))])
    suite.ingest([parse(record_line(case_hash="d" * 16, started="2026-02-01T00:00:00Z"))])
    assert ("1" * 16) in {code for _, code in stored_keys(suite)}


def test_the_order_of_added_records_does_not_matter(tmp_path: Path, record_line: Line) -> None:
    """The records differ in runs, time, checksum, form of the case, or observation."""
    case = parse(record_line()).source
    days = [f"2026-02-0{day}T00:00:00Z" for day in (1, 2)]
    few_runs = {"repeats": 5, "digests": ["a" * 64], "runs": 5}
    all_lines = [record_line(started=day, case_hash=code * 16, **few_runs) for day in days for code in "012"]
    all_lines += [record_line(started=days[0], case_hash=code * 16) for code in "012"]  # more, and earlier
    all_lines += [
        record_line(started=days[0], case_hash="1" * 16, duration_seconds=9.0),
        record_line("differs", case_hash="1" * 16),
    ]
    rng, results = random.Random(7), set()
    for turn in range(30):
        store = EvidenceStore(tmp_path / str(turn), hashes=lambda: {case: {"1" * 16}})
        rng.shuffle(all_lines)
        for record_line in all_lines:
            store.ingest([parse(record_line)])
        results.add(b"".join(lines(store)))
    assert len(results) == 1


def test_a_case_under_its_earlier_hash_is_the_same_case(store: EvidenceStore, record_line: Line) -> None:
    """A new hash method changes no case; a record with as many runs replaces the older one."""
    store.folder.mkdir(parents=True)
    (store.folder / "earlier-hashes.json").write_text(json.dumps({"hashes": {"0" * 16: "1" * 16}}))
    earlier = record_line(case_hash="0" * 16, started="2026-01-01T00:00:00Z", relaunches=2)
    store.ingest([parse(earlier)])
    store.ingest([parse(record_line(case_hash="1" * 16, started="2026-02-01T00:00:00Z"))])
    assert lines(store) == [earlier]
    same = record_line(case_hash="1" * 16, started="2026-03-01T00:00:00Z", relaunches=2)
    store.ingest([parse(same)])
    assert lines(store) == [same]


def test_lines_are_sorted(store: EvidenceStore, record_line: Line) -> None:
    store.ingest([parse(record_line(case=name, solution=key)) for name in ("b", "a") for key in ("none", "TDO")])
    order = [(r.case, r.solution) for path in store.files() for r in read_records(path)]
    assert order == [("a", "TDO"), ("a", "none"), ("b", "TDO"), ("b", "none")]


def test_a_record_in_the_wrong_file_is_reported(store: EvidenceStore, record_line: Line) -> None:
    path = store.path("cpu", "tf1.15")
    path.parent.mkdir(parents=True)
    path.write_bytes(record_line())
    with pytest.raises(DataError, match=r"holds a record of cpu/tf2\.0"):
        list(store.read(path))


def test_two_concurrent_processes_lose_no_record(store: EvidenceStore, record_line: Line) -> None:
    def add(machine: str) -> None:
        for number in range(10):
            store.ingest([parse(record_line(machine=machine, case=f"case-{number}"))])

    threads = [threading.Thread(target=add, args=(digit * 12,)) for digit in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(store)) == 30


def test_a_full_disk_leaves_the_old_file(
    store: EvidenceStore, record_line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest([parse(record_line())])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Exception, match="No space left"):
        store.ingest([parse(record_line(case="another"))])
    assert lines(store) == [record_line()]
    assert not list(store.folder.rglob("*.part"))


def test_a_line_that_only_the_strict_reader_refuses_is_reported(
    store: EvidenceStore, record_line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest([parse(record_line(case=name)) for name in ("a", "b")])
    (path,) = store.files()

    def stricter(text: bytes) -> Record:
        if b'"case":"b"' in text:
            raise ValueError("strange")
        return parse(text)

    monkeypatch.setattr("tfdet.store.evidence.parse", stricter)
    with pytest.raises(DataError, match=re.escape(f"{path}:2: strange")) as caught:
        list(store.read(path))
    assert caught.value.advice


@pytest.mark.parametrize("folder", ["evidence", "signatures"])
def test_a_file_in_place_of_a_devices_folder_is_reported(copy: Project, folder: str) -> None:
    device = sorted(path for path in (copy.matrix / folder).iterdir() if path.is_dir())[0]
    shutil.rmtree(device)
    device.write_text("")
    with pytest.raises(DataError, match=re.escape(f"{device}: a file")) as caught:
        if folder == "evidence":
            EvidenceStore.open(copy).files()
        else:
            AttestationStore.open(copy, load_matrix(copy.matrix)).find_faults()
    assert (caught.value.code, bool(caught.value.advice)) == (ExitCode.USAGE, True)
