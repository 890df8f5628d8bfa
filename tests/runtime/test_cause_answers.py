"""When an answer of `locate` counts as right for a program of the collection of causes."""

from __future__ import annotations

from typing import Any

import pytest
from cause_answers import compared
from cause_collection import CauseProgram, programs

(BOTH,) = programs("torch", ["two_set_and_noise"])
(ONE,) = programs("torch", ["vocabulary_of_set"])
(RACE,) = programs("torch", ["index_gradient"])
(CLEAN,) = programs("torch", ["clean_times_logged"])


def named(program: CauseProgram, number: int = 0, **other: Any) -> dict[str, Any]:
    """Return a cause of the program in the form of `locate --json`."""
    place = program.causes[number].place
    line = {"file": f"/copy/{place.file}", "line": place.line(program.folder), "text": place.text}
    return {"kind": place.kind, "places": [line], **other}


def judgements(
    program: CauseProgram, *causes: dict[str, Any], result: str = "diverged", **fields: Any
) -> list[bool | None]:
    """Return whether kinds and places are right, and whether a false statement was made."""
    # True, 3.0: its fix holds, and the search took the time of three runs.
    answer = compared(program, {"causes": list(causes), "result": result, "runs": 9, **fields}, True, 3.0)
    return [answer.kinds, answer.places, answer.false]


def test_the_true_cause_is_right() -> None:
    assert judgements(ONE, named(ONE)) == [True, True, False]


def test_an_answer_with_another_line_is_wrong() -> None:
    wrong = {"file": "main.py", "line": 3, "text": ""}
    assert judgements(ONE, named(ONE, places=[wrong])) == [True, False, False]
    assert judgements(ONE, named(ONE, places=[*named(ONE)["places"], wrong])) == [True, False, False]
    assert judgements(ONE, named(ONE, places=[])) == [True, False, False]


def test_another_kind_is_a_false_statement() -> None:
    assert judgements(ONE, named(ONE, kind="pid")) == [False, False, True]
    assert judgements(ONE, named(ONE), named(ONE, kind="pid")) == [False, False, True]


def test_no_cause_is_not_right_and_not_false() -> None:
    assert judgements(ONE) == [False, False, False]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_both_causes_are_expected_in_any_order(order: tuple[int, int]) -> None:
    assert judgements(BOTH, *(named(BOTH, number) for number in order)) == [True, True, False]
    assert judgements(BOTH, named(BOTH, order[0])) == [False, False, False]


def test_the_same_cause_twice_is_not_both() -> None:
    assert judgements(BOTH, named(BOTH, 0), named(BOTH, 0)) == [False, False, True]


def test_a_coarse_kind_is_right_at_the_line_of_its_op() -> None:
    """A coarse kind belongs to a whole process, and may have no line: then the line of its op, the culprit, counts."""
    op = named(RACE)["places"][0]
    assert judgements(RACE, named(RACE, places=[]), culprits=[op]) == [True, True, False]
    assert judgements(RACE, named(RACE, places=[]), culprits=[{**op, "line": 1}]) == [True, False, False]
    assert judgements(ONE, named(ONE, places=[]), culprits=named(ONE)["places"]) == [True, False, False]


def test_anything_said_of_a_clean_program_is_false() -> None:
    assert judgements(CLEAN, result="same") == [None, None, False]
    assert judgements(CLEAN, result="diverged") == [None, None, True]
    assert judgements(CLEAN, {"kind": "clock", "places": []}, result="same") == [None, None, True]


def test_all_runs_of_a_search_are_counted() -> None:
    answer = {"causes": [named(ONE)], "result": "diverged", "runs": 2, "interventions": {"total_runs": 14}}
    assert compared(ONE, answer, True, 3.0).runs == 14
    assert compared(ONE, {**answer, "interventions": None}, True, 3.0).runs == 2
