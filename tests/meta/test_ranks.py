"""Cases of several ranks: the bytes of each rank are compared; a rank that dies or hangs ends the case."""

import os
import signal
from pathlib import Path

import pytest
from test_interrupt import has_ended, started_children, wait_for

SUITES = Path(__file__).parents[1] / "suite"
SUITE = """
import os, signal, time
import numpy as np
from tfdet_probe import case


def note():
    with open(os.path.join(os.environ["PLANTED"], "started"), "a") as out:
        out.write("0 {}\\n0 {}\\n".format(os.getpid(), os.getppid()))


@case("several", modes=["host"], ranks=[RANKS])
def several(make, ranks):
    values = make.uniform((100,))

    def run():
        note()
        if make.rank == 2:
            FAULT
        elif BESIDE:
            time.sleep(600)
        return [values, np.arange(3) + make.rank]
    return make.ranks("processes", ranks, make.host(run), variables={"TOLD": "all"})


@case("after", modes=["host"])
def after(make):
    return make.host(lambda: [np.arange(3)])
"""
FAST = ("--repeats", 3, "--processes", 2, "--timeout", 30)


def suite(probe, fault="pass", beside="False", ranks=3):
    """Write the suite with a fault in rank 2, and its plan; beside: "True" if the other ranks hang."""
    probe.plan("several", "after")
    text = SUITE.replace("FAULT", fault).replace("BESIDE", beside).replace("RANKS", str(ranks))
    return probe.suite(text)


def wait_until_all_ended(probe):
    """Wait until all started processes have ended."""
    wait_for(lambda: all(has_ended(pid) for _, pid in started_children(probe)), 10)


def test_ranks_that_repeat_are_equal_and_the_record_names_them(probe):
    run = probe(suite(probe), *FAST)
    record = run.record_of("several")
    assert (run.code, record["observation"], record["runs"], record["distinct"]) == (0, "equal", 6, 1)
    assert record["ranks"] == {
        "number": 3, "launcher": "processes", "transport": "none", "library": None, "variables": {"TOLD": "all"},
        "differed": [0, 0, 0], "outputs": {}, "agreed": 0,
    }  # fmt: skip
    assert "ranks" not in run.record_of("after")
    wait_until_all_ended(probe)


def test_each_rank_has_inputs_of_its_own_and_the_same_in_each_process(probe):
    fault = "open(os.path.join(os.environ['PLANTED'], 'told'), 'a').write(os.environ['TOLD'] + '\\n')"
    run = probe(suite(probe, fault), *FAST)
    assert run.record_of("several")["distinct"] == 1
    assert (probe.folder / "told").read_text().split() == [
        "all"
    ] * 7  # the reference and two processes of three repeats


def test_one_rank_that_differs_is_named(probe):
    run = probe(suite(probe, "values[0] = np.random.rand()"), *FAST)
    record = run.record_of("several")
    assert (record["observation"], record["differed"], record["ranks"]["differed"]) == ("differs", 6, [0, 0, 6])
    assert record["ranks"]["outputs"] == {"0": 6}


@pytest.mark.parametrize(
    ("fault", "kind", "error_type", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "SIGKILL", "rank 2: the process was ended by SIGKILL"),
        ("os._exit(0)", "crashed", "NoReport", "rank 2: the process ended without a report"),
        ("1 / 0", "crashed", "ZeroDivisionError", "rank 2: division by zero"),
        ("values = bytearray(600 << 20); time.sleep(600)", "crashed", "OutOfMemory", "rank 2: killed above 300 MiB"),
        ("time.sleep(600)", "timed-out", "TimeOut", "no end after 8 s"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "timed-out", "TimeOut", "no end after 8 s"),
    ],
)
def test_a_rank_that_fails_ends_the_case_and_nothing_stays(probe, fault, kind, error_type, message):
    others_hang = "True" if kind == "crashed" else "False"
    run = probe(
        suite(probe, fault, others_hang), *FAST[:4], "--timeout", 60 if kind == "crashed" else 8, "--memory", 300
    )
    record = run.record_of("several")
    assert (run.code, record["observation"], record["error"]["type"]) == (3, kind, error_type)
    assert record["error"]["message"].startswith(message)
    assert run.record_of("after")["observation"] == "equal"
    wait_until_all_ended(probe)


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGKILL])
def test_ranks_end_with_the_probe(probe, told):
    process = probe.start(suite(probe, "time.sleep(600)", "True"), *FAST[:4])
    wait_for(lambda: len(started_children(probe)) == 6)
    os.kill(process.pid, told)
    probe.finish(process)
    wait_until_all_ended(probe)


def test_ranks_without_their_launcher_end(probe):
    process = probe.start(suite(probe, "time.sleep(600)", "True"), *FAST)
    wait_for(lambda: len(started_children(probe)) == 6)
    child = started_children(probe)[1][1]  # the probe's child, which forked the ranks and the launcher's placeholders
    child_pids = Path(f"/proc/{child}/task/{child}/children").read_text().split()
    placeholders = [pid for pid in child_pids if "rank_process" in Path(f"/proc/{pid}/cmdline").read_text()]
    assert len(placeholders) == 3
    os.kill(int(placeholders[0]), signal.SIGKILL)
    run = probe.finish(process)
    assert run.record_of("several")["error"]["type"] == "LauncherEnded"
    wait_until_all_ended(probe)


def test_an_unknown_launcher_is_an_error_of_the_case(probe):
    probe.plan("several")
    run = probe(probe.suite(SUITE.replace('"processes"', '"nothing"').replace("FAULT", "pass").replace("BESIDE", "0")
                            .replace("RANKS", "2")), *FAST)  # fmt: skip
    assert "no launcher 'nothing'" in run.record_of("several")["error"]["message"]


@pytest.mark.tensorflow
def test_two_workers_of_tensorflow_add_their_values(tmp_path, probe_in, tf_python):
    """The case is from the suite, with a framework that connects its ranks."""
    probe = probe_in(tmp_path, tf_python("tf2.21"), "tensorflow")
    probe.plan("multi-worker-mirrored")
    run = probe(SUITES / "tensorflow" / "test_ranks.py", *FAST[:4], "--case", "*-2-host", "--timeout", 110)
    record = run.record_of("multi-worker-mirrored")
    assert (record["observation"], record["runs"], record["error"]) == ("equal", 6, None)
    assert (record["ranks"]["number"], record["ranks"]["launcher"], record["ranks"]["agreed"]) == (2, "TF_CONFIG", 6)
