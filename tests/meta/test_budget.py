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
    """Write a suite of one case for each of NAMES; return its folder."""
    return probe.suite(SUITE + "".join(map(CASE.format, NAMES)))


def cells(ranks, solutions=("none",)):
    """Return the plan's cells; ranks: {source: its rank, by which cases are ordered}."""
    return [
        {"device": "cpu", "source": name, "solution": key, "expect": None, "rank": rank}
        for name, rank in ranks.items()
        for key in solutions
    ]


def record_order(run):
    """Return (source, solution) of the records, in their order."""
    return [(r["source"], r["solution"]) for r in run.records]


def test_cases_run_in_the_order_of_their_ranks(probe, suite):
    probe.plan(cells=cells({"alpha": [2, 0], "beta": [1, 5], "gamma": [0, 9]}))
    assert record_order(probe(suite, "--repeats", 1)) == [("gamma", "none"), ("beta", "none"), ("alpha", "none")]


def test_without_ranks_cases_run_in_the_order_of_the_suite(probe, suite):
    probe.plan("gamma", "alpha", "beta")
    assert record_order(probe(suite, "--repeats", 1)) == [("alpha", "none"), ("beta", "none"), ("gamma", "none")]


def test_no_case_starts_after_the_budget_and_a_rerun_resumes(probe, suite):
    probe.plan(cells=cells({"alpha": [3], "beta": [2], "gamma": [1]}))
    # The first case alone outlasts the budget, on a machine of any speed.
    first_run = probe(suite, "--repeats", 1, "--processes", 1, "--time-budget", "0.0001")
    assert (first_run.code, record_order(first_run) if probe.out.stat().st_size else []) == (0, [])
    assert "3 cases not begun" in first_run.err
    second_run = probe(suite, "--repeats", 1, "--processes", 1, "--time-budget", "100")
    assert [source for source, _ in record_order(second_run)] == ["gamma", "beta", "alpha"]
    assert "not begun" not in second_run.err
    third_run = probe(suite, "--repeats", 1, "--processes", 1)
    assert len(third_run.records) == 3


@pytest.mark.parametrize("minutes", ["0", "-1", "nan", "inf", "soon"])
def test_an_invalid_budget_is_refused(probe, suite, minutes):
    probe.plan("alpha")
    assert probe(suite, "--time-budget", minutes).code == 2


def test_a_selected_solution_includes_its_control(probe, suite):
    probe.plan(cells=cells({"alpha": [1], "beta": [2]}, ("none", "TDO", "TEOD")))
    run = probe(suite, "--solution", "TDO", "--source", "alpha", "--repeats", 1)
    assert set(record_order(run)) == {("alpha", "none"), ("alpha", "TDO")}


def test_contention_runs_only_if_requested(probe, suite):
    probe.plan("alpha")
    busy_run = probe(suite, "--repeats", 2, "--processes", 2, "--contention")
    (record,) = busy_run.records
    assert "threads multiplying matrices" in record["contention"]
    assert record["observation"] == "equal" and record["runs"] == 4
    probe.out.unlink()
    (record,) = probe(suite, "--repeats", 2, "--processes", 2).records
    assert "contention" not in record
