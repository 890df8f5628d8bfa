"""A case that another machine of a fleet finished does not run again, unless it lacks its control or solutions."""

import json

SUITE = """
import numpy as np
from tfdet_probe import case


@case("one", modes=["host"])
def one(make):
    return make.host(lambda: [np.arange(3)])


@case("two", modes=["host"])
def two(make):
    return make.host(lambda: [np.arange(4)])
"""
FIRST, SECOND = "a" * 12, "b" * 12


def test_a_case_that_another_machine_finished_is_skipped(probe):
    probe.plan("one", ("one", "TDO", None), "two", ("two", "TDO", None))
    suite = probe.suite(SUITE)
    probe(suite, "--repeats", 1, TFDET_MACHINE=FIRST)
    records = probe.out.read_text().splitlines(keepends=True)
    assert len(records) == 4
    # The first machine was killed before the last of its records: a case under TDO whose control it had finished.
    probe.out.write_text("".join(records[:3]))
    run = probe(suite, "--repeats", 1, "--resume-from-any-machine", TFDET_MACHINE=SECOND)
    assert run.code == 0, run.err
    missing = {key: json.loads(records[3])[key] for key in ("source", "solution")}
    (finished,) = {"one", "two"} - {missing["source"]}
    by_machine = {
        machine: sorted((r["source"], r["solution"]) for r in run.records if r["machine"] == machine)
        for machine in (FIRST, SECOND)
    }
    assert by_machine[SECOND] == [(missing["source"], "TDO"), (missing["source"], "none")]
    assert [cell for cell in by_machine[FIRST] if cell[0] == finished] == [(finished, "TDO"), (finished, "none")]


def test_without_the_option_each_machine_runs_every_case(probe):
    probe.plan("one")
    suite = probe.suite(SUITE)
    probe(suite, "--repeats", 1, TFDET_MACHINE=FIRST)
    run = probe(suite, "--repeats", 1, TFDET_MACHINE=SECOND)
    assert [record["machine"] for record in run.records] == [FIRST, SECOND]
