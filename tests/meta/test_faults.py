"""Planted faults: each must be caught, named for what it is, and leave the rest of the suite alone."""

import os

import pytest

# A fault in the shared run: source -> what its record must say.
DIFFERS = {
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
    """One process a case, 50 repeats, but for two cases: all faults in one suite."""
    return planted("faults", "--repeats", 50, "--processes", 1, "--timeout", 2.5, "--memory", 300)


@pytest.fixture(scope="module")
def relaunched(planted):
    cells = ["between-processes", "second-process-dies", "clean-after-all"]
    return planted("faults", "--repeats", 3, "--processes", 3, cells=cells)


@pytest.mark.parametrize("source", DIFFERS)
def test_a_difference_is_seen(run, source):
    found = run.of(source)
    assert (found["observation"], found["runs"], found["error"]) == ("differs", 50, None)
    assert {name: found[name] for name in DIFFERS[source]} == DIFFERS[source]
    assert found["differed"] >= 1


def test_a_difference_between_processes_is_seen(run, relaunched):
    assert run.of("between-processes")["observation"] == "equal"  # one process cannot see it
    found = relaunched.of("between-processes")
    assert (found["observation"], found["differed"], found["distinct"]) == ("differs", 6, 3)
    assert found["first_differing"] == {"relaunch": 1, "repeat": 0}


@pytest.mark.parametrize("source", [*[source for source in CRASHED if source != "second-process-dies"], "bug-keyword"])
def test_a_death_or_bug_is_a_crash(run, source):
    name, message = CRASHED.get(source, ("TypeError", "valeus"))
    found = run.of(source)
    assert found["observation"] == "crashed"
    assert found["error"]["type"] == name
    assert message in found["error"]["message"]
    assert found["runs"] == 0


def test_a_death_in_a_later_process_is_a_crash(relaunched):
    found = relaunched.of("second-process-dies")
    assert (found["observation"], found["runs"], found["error"]["type"]) == ("crashed", 3, "SIGABRT")


def test_last_words_are_kept(run):
    assert run.of("abort")["error"]["output"] == "planted.cc:7] Check failed: the sky == blue"


def test_a_hang_is_ended(run):
    found = run.of("hang")
    assert (found["observation"], found["error"]["type"]) == ("timed-out", "TimeOut")
    assert 2.5 <= found["duration_seconds"] < 10


def test_no_process_stays_behind(run):
    with open(os.path.join(os.path.dirname(run.path), "orphans")) as source:
        pids = [int(line) for line in source]
    assert len(pids) == 6
    assert run.of("orphan")["observation"] == run.of("orphan-of-its-own-session")["observation"] == "equal"
    assert [pid for pid in pids if _alive(pid)] == []


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_rest_of_the_suite_goes_on(run, relaunched):
    assert run.records[-1]["source"] == "clean-after-all"
    for each in run, relaunched:
        assert each.of("clean-after-all")["observation"] == "equal"
        assert each.code == 3
    assert "Traceback" not in run.err
    assert "Fatal Python error" not in run.err


def test_every_fault_is_spoken_for(run):
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
