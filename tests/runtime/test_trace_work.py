"""A fix with which a program does less than without it is not offered, although its runs agree."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from interposed_programs import command, environ, located, write_program

from tfdeterminism.trace.search.work import Work, fewer_steps, shortfall

PLAIN: dict[str, Any] = {
    "tensors": 4,
    "sizes": {"out/model.pt": 900, "out/log.csv": 80},
    "printed": "loading 'a'\nepoch 1: loss 0.25\nepoch 2: loss -1e-05\nsaved run-3fa\n",
    "errors": "W tensorflow: Unable to register a factory\n",
}
LESS = [
    ({"tensors": 0}, "it trains 0 tensors, without it 4"),
    ({"sizes": {"out/log.csv": 900}}, "it writes no file *.pt"),
    ({"sizes": {"out/model.pt": 0, "out/log.csv": 900}}, "it writes no file *.pt"),
    ({"sizes": {"out/model.pt": 300, "out/log.csv": 80}}, "it writes 380 bytes, without it 980"),
    ({"printed": PLAIN["printed"].replace("saved run-3fa\n", "")}, "it prints no line like `saved run-3fa`"),
    ({"printed": "epoch 1: loss 0.5\nloading 'b'\n"}, "it prints 2 lines, without it 4"),
    ({"printed": PLAIN["printed"] + "failed: 'a'\n"}, 'it prints "failed", as no other run does'),
    ({"printed": PLAIN["printed"] + "nothing to do\n"}, "it prints `nothing to do`, as no other run does"),
    ({"errors": "ValueError: bad\n"}, 'it prints "valueerror", as no other run does'),
]
AS_MUCH: list[dict[str, Any]] = [
    {},
    {"tensors": 5},
    {"sizes": {"model-0.pt": 880, "b.csv": 70}},
    {"printed": "loading 'b'\nepoch 1: loss 3\nepoch 2: loss 4\nsaved run-0\n"},
    {"errors": "UserWarning: an error is possible\n"},
    {"errors": ""},
]


@pytest.mark.parametrize(("change", "words"), LESS)
def test_a_run_that_does_less_is_told(change: dict[str, Any], words: str) -> None:
    assert shortfall(Work(**{**PLAIN, **change}), [Work(**PLAIN)] * 3) == words


@pytest.mark.parametrize("change", AS_MUCH)
def test_a_run_that_does_as_much_is_accepted(change: dict[str, Any]) -> None:
    assert shortfall(Work(**{**PLAIN, **change}), [Work(**PLAIN)] * 3) is None


def test_what_varies_without_the_change_may_be_a_little_less() -> None:
    others = [Work(printed="step\n" * number) for number in (9, 12)]
    assert shortfall(Work(printed="step\n" * 6), others) is None
    assert shortfall(Work(printed="step\n" * 4), others) == "it prints 4 lines, without it at least 9"


# Sorting these numbers and texts raises an error, which the program catches.
MIXED = """
labels = {"cat", "dog", "cow", "hen", "owl", "fox", 1, 2}
total = 0.1
try:
    for number, label in enumerate(labels):
        total = 3.7 * total * (1 - total) + len(str(label)) * 0.001 * number
except TypeError:
    pass
print("total", total)
"""


def test_a_fix_that_fails_inside_is_not_offered(tmp_path: Path) -> None:
    """The second change is: it sorts by texts."""
    main = MIXED.replace("pass", "print('skipped')")
    code, output = located(write_program(tmp_path, main=main), "--fix", "--max-runs", "3")
    fix = output["causes"][0]["fix"]
    assert (code, fix["result"]) == (5, "holds")
    assert any("key=repr" in line for line in fix["diff"])
    assert fix["does_less"] == ["it prints `skipped`, as no other run does"]


# Half a second of work; with a clock that counts its calls the loop would end at once.
BUDGET = """
import time
end = time.time() + 0.5
turns = 0
while time.time() < end:
    turns += 1
    [time.time() for _ in range(100)]
    if turns % 50 == 0:
        print("turn", turns)
print("turns", turns)
"""


def test_a_rejected_fix_is_said_to_do_less(tmp_path: Path) -> None:
    program = write_program(tmp_path, main=BUDGET)
    ran = subprocess.run(command("--fix", "--", "main.py"), cwd=program, env=environ(), capture_output=True, text=True)
    assert ran.returncode == 1
    assert "(a change was tried, and rejected: the runs agree, but it prints no line like `turn " in ran.stdout


def test_fewer_steps_are_told() -> None:
    run, others = Work(), [Work(), Work()]
    assert fewer_steps(run, others) is None
    others[0].steps = 4
    assert fewer_steps(run, others) == "it makes 0 training steps, without it 4"
    run.steps, others[1].steps = 3, 5
    assert fewer_steps(run, others) is None, "the number varies without the change"
    assert fewer_steps(run, others[:1]) == "it makes 3 training steps, without it 4"
