"""`locate --fix`: which advice it applies, what it reports, and whether that helps in real TensorFlows.

Solutions that need no change of the program set variables (PYHASH: PYTHONHASHSEED, TDO) or make calls before its first
op (SEED, KSEED of Keras, ED: enable_determinism(), TEOD). The others, such as ONEWORKER in a pipeline, need a change.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import weekly
from forks import Forks, Job
from test_trace_locate import PROGRAMS, ScriptedRuns, program, run_environment, run_locate

from tfdeterminism.trace import backends, remedies
from tfdeterminism.trace.causes import advice
from tfdeterminism.trace.faults import Fault
from tfdeterminism.trace.report import text
from tfdeterminism.trace.search import fixes
from tfdeterminism.trace.search.fix_trial import FixTrial
from tfdeterminism.trace.search.program_runner import ProgramFailedError
from tfdeterminism.trace.search.run_ends import digest_of_weights

TFDET = ("-m", "tfdeterminism.trace", "run", "--level", "none")


def culprit(solution: str | None, **fields: Any) -> dict[str, Any]:
    return {"op_type": "RandomUniform", "file": "train.py", "line": 7, "class": "seed or state", "solution": solution,
            "lines": ["dataset.map(function)"], **fields}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "applied", "by_hand"),
    [
        ([culprit("SEED")], ["SEED"], 0),
        ([culprit("ED"), culprit("PYHASH"), culprit("ED")], ["PYHASH", "ED"], 0),
        ([culprit("ONEWORKER"), culprit("TDO")], ["TDO"], 1),
        ([culprit(None)], [], 1),
        ([culprit(None, lines=backends.HOST_VALUE_LINES)], ["SEED"], 0),
        ([culprit(None, lines=backends.find("tensorflow").advice_lines(Fault.UNORDERED, "Add", False))], [], 1),
        ([], [], 0),
    ],
)
def test_which_solutions_are_applied_without_changing_the_program(
    given: list[dict[str, Any]], applied: list[str], by_hand: int
) -> None:
    automatic, rest = fixes.automatic_fixes(given)
    assert ([automatic_fix.key for automatic_fix in automatic], len(rest)) == (applied, by_hand)


def test_every_solution_of_the_matrix_is_applied_or_needs_a_change() -> None:
    """A new solution must be listed here or among those that require a change of the program."""
    by_hand = {"ETC", "HVDGROUP", "ONEWORKER", "ORDERED", "SEQUENTIAL"}
    of_pytorch = {"UDA"}  # the file speaks of TensorFlow alone
    assert set(advice._content()["solutions"]) | of_pytorch == set(remedies.AUTOMATIC_FIXES) | by_hand


def run_trial(digests: Callable[[bool, int], object], culprits: list[dict[str, Any]], runs: int = 3) -> Any:
    """Try advice in runs that take 2 s, and 3 s with it. digests(fixed, turn): the final weights; None: compare ops."""
    now = [0.0]

    def record(options: list[str], environment: dict[str, str], turn: int) -> object:
        fixed = bool(options or environment)
        now[0] += 2 + fixed
        return digests(fixed, turn)

    return FixTrial(record, lambda options, environment: [0, 0, 1], runs, clock=lambda: now[0]).run(culprits)


def test_helping_advice_is_reported() -> None:
    fix = run_trial(lambda fixed, turn: "same" if fixed else turn, [culprit("ED")])
    assert fix.lines() == [
        "applied from outside: tfdeterminism.enable_determinism(), and seeds (ED)",
        "with it the program repeats itself: 3 of 3 runs end alike (without it 1 of 3); "
        "it takes 1.50 times as long (3.0 s, without it 2.0 s)",
    ]
    as_json = json.loads(json.dumps(fix.as_json()))
    assert (as_json["result"], as_json["ratio"], as_json["without"]["distinct"]) == ("repeats", 1.5, 3)


def test_useless_advice_is_reported() -> None:
    fix = run_trial(lambda fixed, turn: turn // 2, [culprit("SEED")])
    assert fix.result == "differs"
    assert "with it the program still differs: 2 of 3 runs end alike (without it 2 of 3)" in fix.lines()[1]


def test_advice_without_which_the_runs_agree_as_well_is_not_praised() -> None:
    fix = run_trial(lambda fixed, turn: "same", [culprit("SEED")])
    assert fix.result == "not shown"
    assert "with it and without it the program repeats itself, which shows nothing: 3 of 3 runs" in fix.lines()[1]


def test_advice_that_makes_the_program_fail_is_reported() -> None:
    def digests(fixed: bool, turn: int) -> object:
        if fixed:
            raise ProgramFailedError("the program ended with exit code 1 in run 9", "")
        return turn

    fix = run_trial(digests, [culprit("TEOD")])
    assert (fix.result, fix.lines()[1]) == (
        "fails", "with it the program fails: the program ended with exit code 1 in run 9")  # fmt: skip


def test_a_program_without_weights_is_compared_op_by_op() -> None:
    fix = run_trial(lambda fixed, turn: None, [culprit("SEED")])
    assert (fix.result, fix.compared_by_ops) == ("differs", True)
    assert "2 of 3 runs end alike, op by op" in fix.lines()[1]


def test_a_solution_that_needs_a_change_is_reported_with_its_line() -> None:
    """Nothing is run if no advice can be applied."""
    fix = run_trial(lambda fixed, turn: pytest.fail("it ran"), [culprit("ONEWORKER")])
    assert fix.result == "by hand"
    assert fix.lines() == ["not from outside: RandomUniform (train.py:7) needs a change of the program's own code:",
                           "    dataset.map(function)"]  # fmt: skip


class FixedByAdvice(ScriptedRuns):
    """Its runs agree if the advice is applied."""

    def _run(self, level: str, steps: Any, more: Any = (), environment: Any = None, fixed: bool = False) -> str:
        applied = fixed and "--apply-solutions" in list(more)
        self._script = program(lambda run, env: "mended" if applied else run, kind="random")
        folder = super()._run(level, steps, more, environment)
        if fixed:
            self._ends._runs.pop()  # runs of the trial are not compared with the others
        return folder


def test_the_search_tries_its_advice(tmp_path: Path) -> None:
    """Exit code 5, the JSON and the text; the trial's runs are not counted as others."""
    search = FixedByAdvice(tmp_path, program(lambda run, environment: run), runs=3, fix=True)
    diff = search.search()
    assert (diff.result, diff.code, diff.as_json()["fix"]["result"]) == ("diverged", 5, "repeats")
    assert [level for level, _ in search.asked][-6:] == ["none"] * 6
    assert "Fix:\n  applied from outside: the seeds" in text.search_text(diff)


def test_without_a_difference_no_advice_is_tried(tmp_path: Path) -> None:
    diff = ScriptedRuns(tmp_path, program(lambda run, environment: 0), runs=2, fix=True).search()
    assert (diff.fix, diff.code, diff.as_json()["fix"]) == (None, 0, None)


def test_unknown_solutions_are_refused() -> None:
    for names in ("NOTHING", "ED,PYHASH", ""):
        command = [
            sys.executable,
            "-m",
            "tfdeterminism.trace",
            "run",
            "--out",
            "x",
            "--apply-solutions",
            names,
            "--",
            "train.py",
        ]
        ran = subprocess.run(command, env=run_environment(), capture_output=True, text=True)
        assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
        assert "no solution that can be applied by a call" in ran.stderr


# program, what is applied, does it end alike
APPLIED = {
    "tf2.21": [("session_loop.py", "SEED", True), ("dropout.py", "KSEED", True), ("crop_race.py", "ED", True),
               ("timestamp.py", "SEED", False)],
    "tf2.0": [("session_loop.py", "SEED", True), ("unseeded.py", "ED", True)],
    "tf1.14": [("session_loop.py", "SEED", True), ("unseeded.py", "ED", True), ("python_feed.py", "SEED", True)],
}  # fmt: skip


@pytest.mark.tensorflow
@weekly.on_day(1, days=2)
@pytest.mark.parametrize("environment", weekly.select_for_today([*APPLIED]))
def test_advice_in_real_runs(forks: Callable[[str], Forks], environment: str, tmp_path: Path) -> None:
    """The program's file is unchanged, and three runs agree, or differ as before."""
    numbers: Iterator[int] = itertools.count()
    wrong = []
    for name, key, alike in APPLIED[environment]:
        digests = []
        for _ in range(3):
            out = tmp_path / str(next(numbers))
            job = Job(
                [*TFDET, "--out", str(out), "--apply-solutions", key, "--", str(PROGRAMS / name)], fresh=key == "SEED"
            )
            (ran,) = forks(environment).run([job])
            assert ran.returncode == 0, (name, ran.stderr)
            digests.append(digest_of_weights(str(out)))
        if (len(set(digests)) == 1) != alike or None in digests:
            wrong.append((name, key, digests))
    assert wrong == []


@weekly.on_day(4)
@pytest.mark.tensorflow
def test_locate_fix_finds_and_tries_the_solution(tf_python: Callable[[str], Path]) -> None:
    options = ("--trace-only", "--max-runs", "2", "--fix")
    output, _ = run_locate(5, tf_python("tf2.0"), *options, "--", str(PROGRAMS / "unseeded.py"))
    assert (output["result"], output["fix"]["result"]) == ("diverged", "repeats")
    assert output["fix"]["with"]["identical"] == 2
    assert output["fix"]["ratio"] > 0


@weekly.on_day(1)
@pytest.mark.tensorflow
def test_the_cause_is_no_line_of_this_project_in_a_copy_of_it(tf_python: Callable[[str], Path]) -> None:
    output, _ = run_locate(5, tf_python("tf2.0"), "--max-runs", "2", "--fix", "--", str(PROGRAMS / "unseeded.py"))
    assert [(cause["kind"], cause["fix"]["result"]) for cause in output["causes"]] == [("random", "holds")]
