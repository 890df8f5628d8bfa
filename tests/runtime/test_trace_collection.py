"""The collection of programs with known causes: its content, and complete searches of the fast ones.

All of them: python benchmarks/trace_collection.py ENV.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from collection import ENVIRONMENTS, Program, faults, programs
from forks import Forks

FORMS = {
    "Estimator", "Keras fit", "TF1 session", "custom loop", "distribution strategies", "eager", "function",
    "generators", "gradients of gradients", "late start", "mixed precision", "no optimizer", "py_function",
    "saved and restored",
    "several feeds", "structure", "tf.data", "threads in Python", "two culprits", "while and map_fn",
}  # fmt: skip
# One of each class of fault that the debug tool had, and clean ones of the same kinds.
QUICK = {
    "tf2.21": ["clean_inference", "clean_late", "clean_pool_of_threads", "data_slices_from_python", "late_constant",
               "late_variable", "map_fn_random", "no_optimizer_statistics", "runs_until_a_time", "session_initializer",
               "sum_as_completed", "threads_race_on_variable", "threads_write_last", "turns_by_chance",
               "two_at_different_steps"],
    "tf2.0": ["clean_session_while", "late_feed", "session_dataset_fed", "turns_by_chance"],
    "tf1.14": ["clean_histogram", "map_fn_random_session", "no_optimizer_session"],
}  # fmt: skip


def test_the_collection_is_complete() -> None:
    by_name = {item.name: item for environment in ENVIRONMENTS for item in programs(environment)}
    assert len(by_name) >= 60
    assert {item.form for item in by_name.values()} == FORMS
    for program in by_name.values():
        assert program.name.startswith("clean_") == (program.outcome == "same"), program.name
        assert len(program.lines) == len(program.expected), program.name


def test_a_wrong_answer_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "noise.py"
    path.write_text('"""Noise.\n\nform: eager\nexpect: op=PyFunc | class=Python feed\n"""\nnoise()  # <- culprit\n')
    program = Program(path)
    right = {"op_type": "PyFunc", "class": "Python feed", "file": "noise.py", "line": 6, "source": None, "step": 0}
    answer = {"result": "diverged", "verdict": "", "culprits": [right]}
    assert program.faults(answer) == []
    assert program.faults({**answer, "culprits": [{**right, "line": 7}]}) == ["line noise.py:7, not noise.py:6"]
    assert program.faults({**answer, "culprits": [right, right]}) == ["2 culprits, not 1: ['PyFunc', 'PyFunc']"]
    assert program.faults({**answer, "culprits": []})
    path.write_text('"""Clean.\n\nform: eager\nexpect: same\n"""\n')
    assert Program(path).faults(answer) == ["accused: "]


@pytest.mark.tensorflow
@weekly.on_day(0, days=2)
@pytest.mark.parametrize("environment", weekly.select_for_today([*QUICK]))
def test_searches_of_quick_programs_are_right(environment: str, forks: Callable[[str], Forks], tmp_path: Path) -> None:
    wrong = {}
    for program in programs(environment):
        if program.name in QUICK[environment]:
            folder = tmp_path / program.name
            folder.mkdir()
            wrong[program.name] = faults(program, forks(environment), folder)
    assert len(wrong) == len(QUICK[environment])
    assert not {name: messages for name, messages in wrong.items() if messages}
