"""Clean ops have no differences, whatever their outputs are made of."""

import json
import os
from collections import Counter

import pytest

from tfdet_common import journal


@pytest.fixture(scope="module")
def clean_run(planted):
    """Return the run of planted/clean.py: four repeats in two processes."""
    return planted("clean", "--repeats", 4, "--processes", 2)


def test_a_deterministic_case_does_not_differ(clean_run):
    assert clean_run.code == 0
    for record in clean_run.records:
        fields = {
            name: record[name]
            for name in (
                "observation",
                "runs",
                "differed",
                "distinct",
                "first_differing",
                "max_ulp",
                "max_absolute",
                "error",
            )
        }
        assert fields == {
            "observation": "equal",
            "runs": 8,
            "differed": 0,
            "distinct": 1,
            "first_differing": None,
            "max_ulp": 0,
            "max_absolute": 0.0,
            "error": None,
        }, record["case"]
        assert len(record["digests"]) == 1


def test_every_case_ran(clean_run):
    assert Counter(r["source"] for r in clean_run.records) == {
        "numbers": 44,
        "edges": 1,
        "strings": 1,
        "seeded-noise": 1,
        "keeps-its-inputs": 1,
        "talks": 1,
    }
    keys = [r["case"] for r in clean_run.records]
    assert len(set(keys)) == len(keys)
    assert "numbers" in clean_run.out and "equal 352" in clean_run.out  # the closing table: 44 cases of 8 runs
    assert "may say something" not in clean_run.out


def test_other_outputs_have_other_digests(clean_run):
    # Digests contain dtype and shape, so those of empty outputs differ, too.
    digests = [r["digests"][0] for r in clean_run.records]
    assert len(set(digests)) == len(digests)
    assert all(r["checksum"] == journal.checksum(r) for r in clean_run.records)


def test_records_are_sorted_canonical_lines(clean_run):
    for line in clean_run.path.read_text().splitlines():
        assert journal.dump(json.loads(line)) == line


def test_a_record_says_where_it_comes_from(clean_run):
    record = clean_run.records[0]
    assert (record["schema"], record["environment"], record["device"], record["solution"], record["mode"]) == (
        2,
        "planted",
        {"kind": "cpu", "model": "cpu"},
        "none",
        "host",
    )
    assert (record["repeats"], record["relaunches"]) == (4, 2)
    assert record["framework"] == {"name": "bare", "version": "0.0"}
    assert record["stack"]["cores"] == len(os.sched_getaffinity(0))
    assert record["determinism_environment"] == {}
    assert record["started"].endswith("Z")
