"""The journal: finished records are never lost, and torn or foreign lines are never taken for records."""

import copy
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tfdet_common.journal import Journal, JournalUnusableError, checksum, dump, is_locked_by_writer
from tfdet_probe.core.record import build_record

REPORT = {"differed": [], "digests": ["aa", "aa"], "seconds": [3.0, 0.5], "ulp": 0, "absolute": 0.0, "reference": "aa"}


def make_record(case="one", **changes):
    """Return a record of two repeats in one process."""
    key = {"environment": "e", "device": "cpu", "source": "s", "case": case, "solution": "none"}
    return build_record(key, [dict(REPORT, **changes)], {"repeats": 2, "relaunches": 1})


@pytest.fixture
def journal_path(tmp_path):
    """Return the path of a journal that does not exist yet."""
    return str(tmp_path / "records.jsonl")


def test_added_records_are_read_back(journal_path):
    journal = Journal(journal_path)
    records = [make_record(str(n)) for n in range(3)]
    for record in records:
        journal.add(record)
    assert Journal(journal_path).records == records
    assert list(Journal(journal_path).find_all({"case": "2", "repeats": 2})) == records[2:]
    assert list(Journal(journal_path).find_all({"case": "2", "repeats": 3})) == []
    assert list(Journal(journal_path).find_all({"case": "3"})) == []


def test_details_of_all_reports_are_added_to_the_device(journal_path):
    device = {"kind": "vgpu", "model": "vgpu-sm70"}
    report = dict(REPORT, differed=[1], schedules=["reverse"], codes=["ptx"], digests=["aa", "bb"])
    found = build_record(
        {"device": device},
        [report, dict(REPORT, codes=["sass", "ptx"])],
        {},
        lambda schedules, codes, calls: {"schedules": schedules, "code": codes},
    )
    assert found["device"] == dict(device, details={"schedules": ["reverse"], "code": ["ptx", "sass"]})
    Journal(journal_path).add(found)
    assert list(Journal(journal_path).find_all({"device": device})) == [found]
    assert list(Journal(journal_path).find_all({"device": dict(device, model="vgpu-sm80")})) == []


def test_a_truncated_line_loses_only_its_record(journal_path):
    kept, torn = make_record("kept"), dump(make_record("torn")).encode()
    for length in [*range(0, len(torn), 37), len(torn)]:
        with open(journal_path, "wb") as out:
            out.write(dump(kept).encode() + b"\n" + torn[:length])
        journal = Journal(journal_path)
        assert journal.records == [kept]
        journal.add(make_record("next"))
        assert [r["case"] for r in Journal(journal_path).records] == ["kept", "next"]


def test_a_changed_value_is_noticed():
    record = make_record()
    assert record["checksum"] == checksum(record)
    for name in record:
        changed = copy.deepcopy(record)
        changed[name] = "changed"
        assert name == "checksum" or checksum(changed) != record["checksum"]
    assert checksum(dict(record, more=1)) != record["checksum"]


@pytest.mark.parametrize(
    "line",
    [
        b"my shopping list",
        b"[]",
        b"{}",
        b"\xff\xfe\x00",
        b"",
        b'{"a": NaN}',
        dump(dict(make_record(), differed=1)).encode(),
        dump(dict(make_record(), observation="equal ")).encode(),
    ],
)
def test_a_file_that_is_no_journal_stays_unchanged(journal_path, line):
    content = dump(make_record()).encode() + b"\n" + line + b"\n"
    with open(journal_path, "wb") as out:
        out.write(content)
    with pytest.raises(JournalUnusableError, match=r"records\.jsonl:2: not a record"):
        Journal(journal_path)
    with open(journal_path, "rb") as source:
        assert source.read() == content


@pytest.mark.parametrize("schema", [1, 3])
def test_another_schema_is_refused_and_kept(journal_path, schema):
    old_record = dict(make_record(), schema=schema)
    old_record["checksum"] = checksum(old_record)
    with open(journal_path, "w") as out:
        out.write(dump(old_record) + "\n")
    advice = f"a record of schema {schema}, but a run resumes from schema 2 only; move the file away"
    with pytest.raises(JournalUnusableError, match=advice):
        Journal(journal_path)
    assert os.path.getsize(journal_path) == len(dump(old_record)) + 1


def test_two_runs_with_one_file_keep_all(journal_path):
    def run(name):
        for n in range(20):
            Journal(journal_path).add(make_record(f"{name}-{n}"))

    threads = [threading.Thread(target=run, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with open(journal_path) as source:
        assert len({json.loads(line)["case"] for line in source}) == 60


HOLD = "import sys; from tfdet_common.journal import Journal; journal = Journal(sys.argv[1], exclusive=True); "


def test_a_journal_is_locked_until_the_run_ends(journal_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD + "print(1, flush=True); sys.stdin.read()", journal_path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    holder.stdout.readline()
    assert is_locked_by_writer(journal_path)
    with pytest.raises(JournalUnusableError, match="another run is writing"):
        Journal(journal_path, exclusive=True)
    holder.kill()
    holder.wait()
    assert not is_locked_by_writer(journal_path)
    mine = Journal(journal_path, exclusive=True)
    mine.add(make_record())
    assert Journal(journal_path, exclusive=True).records == mine.records


def test_a_surviving_child_holds_no_lock(journal_path):
    fork = "import os, time; os.fork() or (print(1, flush=True), time.sleep(600))"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD + fork, journal_path], stdout=subprocess.PIPE, start_new_session=True
    )
    holder.stdout.readline()
    holder.wait()
    assert not is_locked_by_writer(journal_path)
    os.killpg(holder.pid, signal.SIGKILL)


def test_asking_for_a_lock_does_not_open_a_pipe(journal_path):
    os.mkfifo(journal_path)
    assert not is_locked_by_writer(journal_path)


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal(None)
    journal.add(make_record())
    assert len(journal.records) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_record_of_many_reports():
    first = dict(REPORT, digests=["aa", "bb"], differed=[1], ulp=4, absolute=0.5)
    second = dict(REPORT, digests=["cc", "bb"], differed=[0, 1], ulp=9, absolute=None)
    second.pop("reference")
    found = build_record({}, [first, second], {})
    assert (found["observation"], found["runs"], found["differed"], found["distinct"]) == ("differs", 4, 3, 3)
    assert found["first_differing"] == {"relaunch": 0, "repeat": 1}
    assert (found["max_ulp"], found["max_absolute"], found["digests"]) == (9, None, ["aa", "bb", "cc"])
    assert found["median_seconds"] == 0.5  # the first run of a process pays for building


def test_a_difference_outweighs_a_later_death():
    first = dict(REPORT, digests=["aa", "bb"], differed=[1])
    found = build_record({}, [first, {"error": {"kind": "crashed"}}], {})
    assert (found["observation"], found["error"]) == ("differs", {"kind": "crashed"})


def test_a_death_outweighs_equal_runs():
    found = build_record({}, [REPORT, {"error": {"kind": "timed-out"}}], {})
    assert (found["observation"], found["runs"]) == ("timed-out", 2)
