"""Programs with a known cause each, and deterministic ones (clean_*), recorded in real TensorFlows.

The diff of two traces must name the cause as its culprit: the right op and the right line.

A program says what is expected in its docstring, as the README of the folder `collection` explains:
`expect: op=TYPE | class=CLASS | source=SOURCE | step=N | forward=TYPE`, or `expect: same`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import weekly
from collection import expectations, replace_unreplayed_race
from forks import TRACE, Forks, Job, traced

from tfdeterminism.trace.causes import trace_diff

PROGRAMS = Path(__file__).resolve().parent / "programs"
MAX_RUNS = 12  # runs of a race at most, until one differs from the first
NEEDS_FRESH_PROCESSES = "set_order"  # forks share the seed of Python's hashes
# {old version: the programs whose ops it has}; each kind of cause is tested in one old version at least.
PROGRAMS_IN_OLD_VERSIONS = {
    "tf2.0": ["at_step_seven", "branch", "clean_cnn", "clean_data", "clean_python_calls", "clean_unet", "crop_race",
              "generator", "in_cond", "in_map_fn", "no_result", "parallel_map", "pipeline_unordered",
              "pipeline_unseeded", "python_feed", "python_write", "python_write_given", "scan_noise",
              "switch_case", "two_at_once", "unseeded"],
    "tf1.14": ["after_retrace", "clean_bert_block", "clean_checkpoint", "clean_lstm", "clean_queue",
               "clean_references", "clean_session", "crop_race", "eager_assign", "in_while", "many_dtypes",
               "nan_payload", "numpy_noise", "permuted_rows", "queue_noise", "scan_noise", "seed_from_clock",
               "session_loop", "session_rnn", "timestamp"],
}  # fmt: skip
ENVIRONMENTS = ["tf2.21", *PROGRAMS_IN_OLD_VERSIONS]


def names(environment: str) -> list[str]:
    all_names = sorted(path.stem for path in PROGRAMS.glob("*.py"))
    return [name for name in PROGRAMS_IN_OLD_VERSIONS.get(environment, all_names) if name != NEEDS_FRESH_PROCESSES]


def expected(name: str) -> list[dict[str, Any]]:
    """Return the facts of the expected culprits of a program's trace, the root cause first; [] for a clean program."""
    text = (PROGRAMS / f"{name}.py").read_text("utf-8")
    marked = iter(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <- culprit"))
    return [{**culprit, "line": next(marked, None)} for culprit in expectations(text)[1]]


def test_every_program_has_an_expectation() -> None:
    clean = [name for name in names("tf2.21") if not expected(name)]
    assert len(clean) >= 6
    assert all(name.startswith("clean_") for name in clean)
    assert len(names("tf2.21")) - len(clean) >= 18


class RecordedPrograms:
    """The programs of one environment, each recorded at least twice, into folder/PROGRAM/NUMBER."""

    def __init__(self, environment: str, forks: Forks, folder: Path) -> None:
        self.names = names(environment)
        self._forks = forks
        self._folder = folder
        for number in range(2):  # one after the other, not two runs of a program at the same time
            self._record([self._job(name, number) for name in self.names])

    def difference(self, name: str) -> trace_diff.TraceDiff:
        """Compare the first two runs; of a race, the first run and the first that differs from it."""
        first, count = str(self._folder / name / "0"), 2
        diff = trace_diff.compare([first, str(self._folder / name / "1")])
        while is_race(name) and diff.result == "same" and count < MAX_RUNS:
            self._record([self._job(name, count)])
            diff = trace_diff.compare([first, str(self._folder / name / str(count))])
            count += 1
        return diff

    def _job(self, name: str, number: int) -> Job:
        state = {"PROGRAM_STATE": str(self._folder / f"{name}.state")}
        out = self._folder / name / str(number)
        return traced(out, PROGRAMS / f"{name}.py", environment=state, alone=is_race(name))

    def _record(self, jobs: list[Job]) -> None:
        failed = [ran.stderr[-1500:] for ran in self._forks.run(jobs) if ran.returncode]
        assert not failed, "\n\n".join(failed)


def is_race(name: str) -> bool:
    """Whether two runs of the program may agree by chance."""
    return any(culprit["class"] in ("kernel race", "input pipeline") for culprit in expected(name))


@pytest.fixture(scope="module", params=weekly.select_for_today(ENVIRONMENTS))
def recorded_programs(
    request: pytest.FixtureRequest, forks: Callable[[str], Forks], tmp_path_factory: pytest.TempPathFactory
) -> RecordedPrograms:
    return RecordedPrograms(request.param, forks(request.param), tmp_path_factory.mktemp(request.param))


@pytest.mark.tensorflow
def test_each_culprit_is_named(recorded_programs: RecordedPrograms) -> None:
    """One pass over all programs, because recording takes most of the time."""
    wrong = [
        f"{name}: {text}"
        for name in recorded_programs.names
        for text in faults(name, recorded_programs.difference(name))
    ]
    assert not wrong, "\n".join(wrong)


def faults(name: str, diff: trace_diff.TraceDiff) -> list[str]:
    """Return the differences of a program's diff from the expected one, as text."""
    expected_culprits = expected(name)
    results = (
        {"structure"}
        if any(culprit["class"] == "structure" for culprit in expected_culprits)
        else {"diverged"}
        if expected_culprits
        else {"same"}
    )
    wrong = [] if diff.result in results else [f"{diff.result}, not {results}"]
    if not expected_culprits and (None in diff.weights or len(set(diff.weights)) > 1):
        wrong.append(f"final weights {diff.weights}")
    if len(diff.culprits) != len(expected_culprits):
        wrong.append(f"{len(diff.culprits)} culprits, not {len(expected_culprits)}: {diff.culprits}")
    for want, actual in zip(expected_culprits, diff.culprits, strict=False):
        reported = {
            "op": actual["op_type"].replace("IteratorGetNextSync", "IteratorGetNext"),
            "class": actual["class"],
            "source": actual["source"],
            "line": actual["line"],
            "file": Path(actual["file"] or "").stem,
            "forward": actual["forward_op"],
            "step": str(actual["step"]),
        }
        facts = {**replace_unreplayed_race(want, replay_differed=False), "file": name}
        wrong += [
            f"{fact} {reported[fact]!r}, not {value!r}"
            for fact, value in facts.items()
            if value not in (None, "*", reported[fact])
        ]
    return wrong


@pytest.mark.tensorflow
def test_the_order_of_a_set_is_named_as_cause(forks: Callable[[str], Forks], tmp_path: Path) -> None:
    """Two processes have different hash seeds; the diff runs in the environment, as a user's would."""
    program = PROGRAMS / f"{NEEDS_FRESH_PROCESSES}.py"
    runs = [traced(tmp_path / seed, program, environment={"PYTHONHASHSEED": seed}, fresh=True) for seed in "12"]
    assert [completed.returncode for completed in forks("tf2.21").run(runs)] == [0, 0]
    compared = Job([*TRACE, "diff", str(tmp_path / "1"), str(tmp_path / "2"), "--json"])
    (ran,) = forks("tf2.21").run([compared])
    assert ran.returncode == 1, ran.stderr
    (culprit,) = json.loads(ran.stdout)["culprits"]
    (want,) = expected(NEEDS_FRESH_PROCESSES)
    assert (culprit["class"], culprit["line"]) == (want["class"], want["line"])
    assert any("PYTHONHASHSEED" in line for line in culprit["lines"])
