"""Interrupts of the probe (Ctrl-C, kill -9, a full disk), and runs that resume."""

import os
import random
import resource
import signal
import time
from collections import Counter

import pytest

# PLANTED: the folder to which a suite of these tests reports (`probe.folder`).
SUITE = """
import os, time
import numpy as np
from tfdet_probe import case


@case("slow", modes=["host"], n=list(range(12)))
def slow(make, n):
    with open(os.path.join(os.environ["PLANTED"], "started"), "a") as out:
        out.write("{} {}\\n".format(n, os.getpid()))
    def run():
        time.sleep(SECONDS)
        return [np.arange(100)]
    return make.host(run)
"""
# A case that starts a worker in a process group of its own.
WORKER = SUITE.replace(
    "    def run():",
    """    if n == 0 and os.fork() == 0:
        os.setpgid(0, 0)
        slow.function(make, "worker")
        time.sleep(600)

    def run():""",
).replace("SECONDS", "600")
FAST = ("--repeats", 1, "--processes", 2)


def started_children(probe):
    """Return [case number, process] of each child that started."""
    path = probe.folder / "started"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition, seconds=300):
    """Wait until the condition holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def count_records(probe):
    """Return the number of complete records."""
    return probe.out.read_bytes().count(b"\n") if probe.out.exists() else 0


def has_ended(pid):
    """Return whether the process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("told", [signal.SIGKILL, signal.SIGTERM])
def test_a_terminated_process_is_no_crash_of_its_case(probe, told):
    """Slurm and Kubernetes end a job's processes one after another, by SIGTERM or SIGKILL."""
    probe.plan("slow")
    process = probe.start(probe.suite(SUITE.replace("SECONDS", "600")), *FAST)
    wait_for(lambda: started_children(probe))
    os.kill(int(started_children(probe)[0][1]), told)
    time.sleep(0.3)
    os.kill(process.pid, told)
    process.communicate()
    assert count_records(probe) == 0


def test_killing_the_probe_at_random_moments_loses_no_record(probe):
    probe.plan("slow")
    suite = probe.suite(SUITE.replace("SECONDS", "0.01").replace("range(12)", "range(60)"))
    rng = random.Random(5)
    records_before = []
    for _ in range(4):
        process = probe.start(suite, *FAST)
        count = len(records_before)
        wait_for(lambda count=count: count_records(probe) > count)
        time.sleep(rng.uniform(0, 0.06))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        with open(probe.out, "rb") as source:
            content = source.read()
        records_now = content[: content.rfind(b"\n") + 1].splitlines()
        assert records_now[: len(records_before)] == records_before
        records_before = records_now
    assert 4 <= len(records_before) < 60
    run = probe(suite, *FAST)
    assert run.code == 0
    assert Counter(r["case"] for r in run.records) == {f"slow-{n}-host": 1 for n in range(60)}
    assert run.path.read_bytes().splitlines()[: len(records_before)] == records_before


def test_sigkill_of_the_probe_ends_its_child(probe):
    probe.plan("slow")
    process = probe.start(probe.suite(SUITE.replace("SECONDS", "600")), *FAST)
    wait_for(lambda: started_children(probe))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: has_ended(started_children(probe)[0][1]))


def test_closing_standard_input_ends_the_probe_and_its_children(probe):
    """A closed pipe ends the probe where the kernel does not signal a parent's death."""
    probe.plan("slow")
    process = probe.start(probe.suite(WORKER), *FAST, "--exit-with", os.getpid())
    wait_for(lambda: len(started_children(probe)) == 2)
    process.stdin.close()
    wait_for(lambda: process.poll() is not None)
    assert process.returncode == 130
    assert all(has_ended(pid) for _, pid in started_children(probe))


def test_the_probe_does_not_start_without_its_parent(probe):
    probe.plan("slow")
    run = probe(probe.suite(SUITE.replace("SECONDS", "600")), *FAST, "--exit-with", 1 << 22)  # not a process id
    assert run.code == 130
    assert not started_children(probe)


@pytest.mark.parametrize("to_group", [True, False])
def test_ctrl_c_keeps_finished_records(probe, to_group):
    probe.plan("slow")
    process = probe.start(probe.suite(SUITE.replace("SECONDS", "600 if n else 0")), *FAST)
    wait_for(lambda: count_records(probe) == 1 and len(started_children(probe)) >= 3)
    (os.killpg if to_group else os.kill)(process.pid, signal.SIGINT)
    run = probe.finish(process)
    assert run.code == 130
    assert [r["case"] for r in run.records] == ["slow-0-host"]
    assert all(has_ended(pid) for _, pid in started_children(probe))
    assert "Traceback" not in run.err
    assert "slow" in run.out  # the table of the records so far


def test_a_full_disk_ends_the_probe_and_leaves_whole_records(probe):
    probe.plan("slow")
    process = probe.start(probe.suite(SUITE.replace("SECONDS", "0.01")), *FAST)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4000, 4000))  # bytes of a file
    run = probe.finish(process)
    assert run.code == 3
    assert "File too large" in run.err and "running again" in run.err
    assert "runtest" not in run.err and "Traceback" not in run.err
    assert 0 < len(run.records) < len({case for case, _ in started_children(probe)}) < 12
    assert run.out.split()[-1] == str(2 * len(run.records)), "the table says what was kept"
    assert probe(probe.folder / "suite", *FAST).code == 0
    assert count_records(probe) == 12


def test_ctrl_c_before_the_first_case(probe):
    probe.framework = "tensorflow"  # the module below: the probe imports from this folder
    probe.plan("slow")
    (probe.folder / "tensorflow.py").write_text("open('importing', 'w').close()\nimport time\ntime.sleep(60)\n")
    process = probe.start(probe.suite(SUITE), *FAST)
    wait_for((probe.folder / "importing").exists)
    os.kill(process.pid, signal.SIGINT)
    run = probe.finish(process)
    assert run.code == 130
    assert "Traceback" not in run.err


def test_finished_cases_do_not_run_again(probe):
    probe.plan("slow")
    suite = probe.suite(SUITE.replace("SECONDS", "0"))
    first_run = probe(suite, *FAST)
    content, children = first_run.path.read_bytes(), len(started_children(probe))
    assert (first_run.code, children, len(first_run.records)) == (0, 24, 12)
    second_run = probe(suite, *FAST)
    assert (second_run.code, second_run.path.read_bytes(), len(started_children(probe))) == (0, content, children)
    assert "slow" in second_run.out
    longer_run = probe(suite, "--repeats", 2, "--processes", 2)  # more repeats are another run
    assert (longer_run.code, len(longer_run.records)) == (0, 24)


def test_a_changed_case_is_run_again(probe):
    probe.plan("slow")
    suite = probe.suite(SUITE.replace("SECONDS", "0"))
    probe(suite, *FAST)
    run = probe(probe.suite(SUITE.replace("SECONDS", "0.0")), *FAST)
    assert len(run.records) == 24
    assert len({r["case_hash"] for r in run.records}) == 2


ONCE = """
import os, time
import numpy as np
from tfdet_probe import case


@case("fails", modes=["host"])
def fails(make):
    flag = os.path.join(os.environ["PLANTED"], "failed")
    def run():
        if not os.path.exists(flag):
            open(flag, "w").close()
            FAIL
        return [np.arange(3)]
    return make.host(run)
"""


@pytest.mark.parametrize(("fail", "found"), [("os.abort()", "crashed"), ("time.sleep(60)", "timed-out")])
def test_failed_cases_run_again(probe, fail, found):
    probe.plan("fails")
    suite = probe.suite(ONCE.replace("FAIL", fail))
    limits = ("--repeats", 1, "--processes", 1, "--timeout", 6)
    first_run = probe(suite, *limits)
    assert (first_run.code, [r["observation"] for r in first_run.records]) == (3, [found])
    second_run = probe(suite, *limits)
    assert (second_run.code, [r["observation"] for r in second_run.records]) == (0, [found, "equal"])
    assert probe(suite, *limits).records == second_run.records


def test_cases_run_again_with_another_software_stack(probe):
    probe.plan("slow")
    suite = probe.suite(SUITE.replace("SECONDS", "0").replace("range(12)", "range(2)"))
    probe(suite, *FAST, TFDET_ENGINE="venv")
    assert len(probe(suite, *FAST, TFDET_ENGINE="venv").records) == 2
    assert len(probe(suite, *FAST, TFDET_ENGINE="docker").records) == 4
