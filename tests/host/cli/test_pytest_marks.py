"""`pytest --tfdet` together with pytest's marks, classes and other tests; an error fails only its own test."""

from __future__ import annotations

import re
from pathlib import Path

import weekly
from pytest_sessions import ARGUMENTS, run_session

# ARGUMENTS choose a fake framework.  ran: the file in which steady() notes the name of each call.
MODULE = """
import functools
import itertools
import pathlib
import unittest.mock

import numpy as np
import pytest
from tfdet_probe import case

drawn = itertools.count()
ran = pathlib.Path(__file__).with_name("ran")


def steady(make, name="case"):
    with ran.open("a") as out:
        out.write(name + "\\n")
    return make.host(lambda: [np.arange(2)])


def drifting(make):
    return make.host(lambda: [np.float64(next(drawn))])


def wrapping(function):
    @functools.wraps(function)
    def wrapped(*values):
        return function(*values)

    return wrapped
"""
ABOVE = '{mark}\n@case("mine", modes=["host"])\ndef test_mine(make):\n    return {body}(make)\n'
BELOW = '@case("mine", modes=["host"])\n{mark}\ndef test_mine(make):\n    return {body}(make)\n'
OTHER = "\n\ndef test_other():\n    steady(unittest.mock.Mock(), 'other')\n"


def write_module(folder: Path, text: str) -> Path:
    """Write MODULE, the text, and a test that is no case to test_mine.py, and a pytest.ini."""
    (folder / "test_mine.py").write_text(MODULE + text + OTHER, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = ours\naddopts = --strict-markers\n", "utf-8")
    return folder


def summary(stdout: str) -> str:
    """Return the summary line of pytest without the time."""
    return re.sub(r" in [\d.]+s.*", "", stdout.strip().splitlines()[-1]).strip("= ")


MARKS = [
    ("@pytest.mark.skip(reason='slow')", "steady", "SKIPPED"),
    ("@pytest.mark.skipif('np and config.getoption(\"--tfdet\")', reason='why')", "steady", "SKIPPED"),
    ("@pytest.mark.skipif(False, reason='why')", "drifting", "FAILED"),
    ("@pytest.mark.xfail", "drifting", "XFAIL"),
    ("@pytest.mark.xfail(strict=True)", "steady", "FAILED"),
    ("@pytest.mark.xfail(run=False)", "steady", "XFAIL"),
    ("@pytest.mark.parametrize('n', [1, 2])", "steady", "FAILED"),
]


def test_marks_are_heeded_above_and_below(tmp_path: Path) -> None:
    text, expected = "", {"test_other": "PASSED"}
    for number, (mark, body, outcome) in enumerate(MARKS):
        for position, form in (("above", ABOVE), ("below", BELOW)):
            name = f"{position}_{number}"
            text += form.format(mark=mark, body=body).replace("mine", name) + "\n\n"
            expected[f"test_{name}"] = outcome
    done = run_session(write_module(tmp_path, text), *ARGUMENTS, "-v")
    assert outcomes(done.stdout) == expected, done.stdout + done.stderr
    for name in ("above_6", "below_6"):
        assert f"test_{name}: give the values to @case" in done.stdout


def outcomes(stdout: str) -> dict[str, str]:
    """Return {function name: outcome} from the output of `pytest -v`."""
    return dict(re.findall(r"^test_mine\.py::(?:\w+::)?(\w+)(?:\[none\])? ([A-Z]+)", stdout, re.MULTILINE))


@weekly.on_day(0, days=2)
def test_skipped_and_deselected_cases_are_not_run(tmp_path: Path) -> None:
    """Tests that are not cases run once only."""
    skipped = BELOW.format(mark="@pytest.mark.skip", body="steady").replace("mine", "slow")
    chosen = ABOVE.format(mark="@pytest.mark.ours", body="drifting").replace("mine", "chosen")
    deselected = ABOVE.format(mark="", body="steady").replace("mine", "left")
    folder = write_module(tmp_path, skipped + chosen + deselected)
    assert summary(run_session(folder, *ARGUMENTS, "-m", "ours").stdout) == "1 failed, 3 deselected"
    assert not (folder / "ran").exists()
    assert summary(run_session(folder, *ARGUMENTS, "-k", "other or slow").stdout) == "1 passed, 1 skipped, 2 deselected"
    assert (folder / "ran").read_text("utf-8") == "other\n"


REFUSED = {
    "a method of TestMine: write it as a function of the module": """
class TestMine:
    @case("mine", modes=["host"])
    def test_mine(self, make):
        return steady(make)
""",
    "write @case above all other decorators": ABOVE.format(mark="@wrapping", body="steady"),
    'write @case("mine2", ...) before its def in the module itself': BELOW.format(mark="", body="steady").replace(
        '@case("mine"', '@case(source="mine"'
    ),
    "no values for n": ABOVE.format(mark="", body="steady").replace('"]', '"], n=[]'),
    "no values for op": ABOVE.format(mark="", body="steady").replace('"mine"', '"mine-{op}"'),
    "unknown modes ['graph']; known: [": ABOVE.format(mark="", body="steady").replace('"host"', '"graph"'),
    "two @case": ABOVE.format(mark='@case("both", modes=["host"])', body="steady"),
}


@weekly.on_day(1, days=2)
def test_a_case_that_cannot_run_fails_alone(tmp_path: Path) -> None:
    texts = [text.replace("mine", f"mine{number}") for number, text in enumerate(REFUSED.values())]
    good = BELOW.format(mark="@wrapping", body="steady").replace("mine", "good")
    folder = write_module(tmp_path, "\n\n".join([*texts, good]))
    assert summary(run_session(folder).stdout) == "1 passed"
    done = run_session(folder, *ARGUMENTS, "-v")
    bad = {f"test_mine{number}": "FAILED" for number in range(len(texts))}
    assert outcomes(done.stdout) == {**bad, "test_good": "PASSED", "test_other": "PASSED"}, done.stdout
    for message in REFUSED:
        assert message in done.stdout


@weekly.on_day(0, days=2)
def test_a_method_in_a_class_of_unittest_is_reported(tmp_path: Path) -> None:
    method = (
        '\nclass TestMine(unittest.TestCase):\n    @case("mine", modes=["host"])\n    def test_mine(self, make): pass\n'
    )
    folder = write_module(tmp_path, method)
    assert summary(run_session(folder).stdout) == "1 passed"
    done = run_session(folder, *ARGUMENTS)
    assert summary(done.stdout) == "1 passed, 1 warning", done.stdout
    assert "TestMine.test_mine is not run: write it as a function" in done.stdout


@weekly.on_day(1, days=2)
def test_a_source_named_after_a_parameter_runs(tmp_path: Path) -> None:
    text = ABOVE.format(mark="", body="steady").replace(
        '"mine", modes=["host"]', '"mine-{op}", modes=["host"], op=["a", "b"]'
    )
    done = run_session(write_module(tmp_path, text.replace("(make):", "(make, op):")), *ARGUMENTS)
    assert summary(done.stdout) == "2 passed"
    assert "mine-a under none: not shown" in done.stdout and "mine-b under none: not shown" in done.stdout
