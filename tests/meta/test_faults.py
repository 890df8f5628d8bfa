"""Planted faults: each one is caught, named, and leaves the rest of the suite alone."""

import os

import pytest

# source of a fault in the shared run: fields of its record
DIFFERS: dict[str, dict] = {
    "noise-once": {"differed": 1, "first_differing": {"relaunch": 0, "repeat": 36}},
    "one-bit": {"differed": 50, "max_ulp": 1},
    "negative-zero": {"max_ulp": 0, "max_absolute": 0.0},
    "nan-payload": {"max_ulp": None, "max_absolute": None},
    "other-shape": {"max_ulp": None, "max_absolute": None},
    "other-dtype": {"max_ulp": None, "max_absolute": None},
    "other-number": {"differed": 1, "max_ulp": None},
    "strings-cut-elsewhere": {"distinct": 2, "max_ulp": None},
    "string-with-nul": {"distinct": 2, "max_absolute": None},
    "objects": {"distinct": 2},
    "ragged": {"distinct": 2},
    "mutates-inputs": {"distinct": 51},
}
CRASHED = {
    "segfault": ("SIGSEGV", "SIGSEGV"),
    "abort": ("SIGABRT", "SIGABRT"),
    "second-process-dies": ("SIGABRT", "SIGABRT"),
    "memory": ("OutOfMemory", "above 300 MiB"),
    "exits": ("NoReport", "without a report"),
    "system-exit": ("Exit", "exit status"),
    "bug-zero-division": ("ZeroDivisionError", "division"),
    "bug-name": ("NameError", "nowhere"),
    "bug-none": ("AttributeError", "NoneType"),
    "bug-build": ("AttributeError", "no_such_method"),
    "no-outputs": ("ValueError", "no outputs"),
}


@pytest.fixture(scope="module")
def run(planted):
    """Run all faults in one suite: one process of 50 repeats per case."""
    return planted("faults", "--repeats", 50, "--processes", 1, "--timeout", 2.5, "--memory", 300)


@pytest.fixture(scope="module")
def relaunched(planted):
    """Run the faults that need several processes."""
    cells = ["between-processes", "second-process-dies", "clean-after-all"]
    return planted("faults", "--repeats", 3, "--processes", 3, cells=cells)


@pytest.mark.parametrize("source", DIFFERS)
def test_a_difference_is_seen(run, source):
    record = run.record_of(source)
    assert (record["observation"], record["runs"], record["error"]) == ("differs", 50, None)
    assert {name: record[name] for name in DIFFERS[source]} == DIFFERS[source]
    assert record["differed"] >= 1


def test_a_difference_between_processes_is_seen(run, relaunched):
    assert run.record_of("between-processes")["observation"] == "equal"  # one process cannot see it
    record = relaunched.record_of("between-processes")
    assert (record["observation"], record["differed"], record["distinct"]) == ("differs", 6, 3)
    assert record["first_differing"] == {"relaunch": 1, "repeat": 0}


@pytest.mark.parametrize("source", [*[source for source in CRASHED if source != "second-process-dies"], "bug-keyword"])
def test_a_death_or_bug_is_a_crash(run, source):
    name, message = CRASHED.get(source, ("TypeError", "valeus"))
    record = run.record_of(source)
    assert record["observation"] == "crashed"
    assert record["error"]["type"] == name
    assert message in record["error"]["message"]
    assert record["runs"] == 0


def test_a_death_in_a_later_process_is_a_crash(relaunched):
    record = relaunched.record_of("second-process-dies")
    assert (record["observation"], record["runs"], record["error"]["type"]) == ("crashed", 3, "SIGABRT")


def test_last_words_are_kept(run):
    assert run.record_of("abort")["error"]["output"] == "planted.cc:7] Check failed: the sky == blue"


def test_a_hang_is_ended(run):
    record = run.record_of("hang")
    assert (record["observation"], record["error"]["type"]) == ("timed-out", "TimeOut")
    assert 2.5 <= record["duration_seconds"] < 10


def test_no_process_stays_behind(run):
    with open(os.path.join(os.path.dirname(run.path), "orphans")) as source:
        pids = [int(line) for line in source]
    assert len(pids) == 6
    assert (
        run.record_of("orphan")["observation"] == run.record_of("orphan-of-its-own-session")["observation"] == "equal"
    )
    assert [pid for pid in pids if _alive(pid)] == []


def _alive(pid):
    """Return whether the process runs."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_rest_of_the_suite_goes_on(run, relaunched):
    assert run.records[-1]["source"] == "clean-after-all"
    for one_run in run, relaunched:
        assert one_run.record_of("clean-after-all")["observation"] == "equal"
        assert one_run.code == 3  # a case failed
    assert "Traceback" not in run.err
    assert "Fatal Python error" not in run.err


def test_every_planted_fault_has_an_expected_record(run):
    assert {r["source"] for r in run.records} == {
        *DIFFERS,
        *CRASHED,
        "bug-keyword",
        "between-processes",
        "hang",
        "orphan",
        "orphan-of-its-own-session",
        "clean-after-all",
    }
