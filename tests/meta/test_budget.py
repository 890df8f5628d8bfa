"""Runs with a time budget: which cases run, in which order, and with which control."""

import pytest

SUITE = """
import os, time
import numpy as np
from tfdet_probe import case

def one():
    with open(os.path.join(os.environ["PLANTED"], "ran"), "a") as out:
        out.write("+")
    time.sleep(float(os.environ.get("SLEEP", "0")))
    return [np.zeros(1)]

"""
CASE = """
@case("{0}", modes=("host",))
def {0}(make):
    return make.host(one)
"""
NAMES = ["alpha", "beta", "gamma"]


@pytest.fixture
def suite(probe):
    return probe.suite(SUITE + "".join(map(CASE.format, NAMES)))


def cells(ranks, solutions=("none",)):
    return [
        {"device": "cpu", "source": name, "solution": key, "expect": None, "rank": rank}
        for name, rank in ranks.items()
        for key in solutions
    ]


def order(run):
    return [(r["source"], r["solution"]) for r in run.records]


def test_the_least_rank_is_run_first(probe, suite):
    probe.plan(cells=cells({"alpha": [2, 0], "beta": [1, 5], "gamma": [0, 9]}))
    assert order(probe(suite, "--repeats", 1)) == [("gamma", "none"), ("beta", "none"), ("alpha", "none")]


def test_without_ranks_it_is_the_suites_order(probe, suite):
    probe.plan("gamma", "alpha", "beta")
    assert order(probe(suite, "--repeats", 1)) == [("alpha", "none"), ("beta", "none"), ("gamma", "none")]


def test_past_the_budget_nothing_is_begun_and_running_again_goes_on(probe, suite):
    probe.plan(cells=cells({"alpha": [3], "beta": [2], "gamma": [1]}))
    # The first case alone outlasts the budget, on a machine of any speed.
    first_run = probe(suite, "--repeats", 1, "--processes", 1, "--time-budget", "0.0001")
    assert (first_run.code, order(first_run) if probe.out.stat().st_size else []) == (0, [])
    assert "3 cases not begun" in first_run.err
    second_run = probe(suite, "--repeats", 1, "--processes", 1, "--time-budget", "100")
    assert [source for source, _ in order(second_run)] == ["gamma", "beta", "alpha"]
    assert "not begun" not in second_run.err
    third_run = probe(suite, "--repeats", 1, "--processes", 1)
    assert len(third_run.records) == 3


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "soon"])
def test_a_budget_that_is_none(probe, suite, minutes):
    probe.plan("alpha")
    assert probe(suite, "--time-budget", minutes).code == 2


def test_a_chosen_solution_brings_its_control(probe, suite):
    probe.plan(cells=cells({"alpha": [1], "beta": [2]}, ("none", "TDO", "TEOD")))
    run = probe(suite, "--solution", "TDO", "--source", "alpha", "--repeats", 1)
    assert set(order(run)) == {("alpha", "none"), ("alpha", "TDO")}


def test_beside_a_busy_cpu_only_if_asked(probe, suite):
    probe.plan("alpha")
    busy_run = probe(suite, "--repeats", 2, "--processes", 2, "--contention")
    (record,) = busy_run.records
    assert "threads multiplying matrices" in record["contention"]
    assert record["observation"] == "equal" and record["runs"] == 4
    probe.out.unlink()
    (record,) = probe(suite, "--repeats", 2, "--processes", 2).records
    assert "contention" not in record
