"""Trained variables are read when recording begins and ends, so that a last write without readers can be named."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from traces import TraceBuilder

from tfdeterminism.trace.capture.steps import Steps
from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.interpose import variables

UPDATE = "ResourceScatterSub"


def last_step(
    path: Path, end: object, start_value: object = 0, written: str = UPDATE, edge: str = "exit", **fields: Any
) -> str:
    """Write a trace in which a gradient is written and only the tool reads the variable; return its path.

    end: the final value, None if it is not read; written: the type of the op that writes; edge: the final read is at
    the "exit" of the program, or at the "end" of the recorded steps.
    """
    builder = TraceBuilder(path)
    state = builder.op(
        "Variable@begin:w#0", "Variable", kind="read", variable="w", attrs={"boundary": "begin"}, function=""
    )
    gradient = builder.op("gradient", "Mul")
    write = builder.op("write", written, (gradient,), kind="write", variable="w", output=-1, line=7)
    read = builder.op(
        f"Variable@{edge}:w#0", "Variable", kind="read", variable="w", attrs={"boundary": edge}, function=""
    )
    builder.record(state, start_value, 3)
    builder.record(gradient, fields.get("gradient", 0), 3)
    builder.write(write, 3)
    if end is not None:
        builder.record(read, end, 4 if edge == "exit" else 3)
    return str(builder.end(steps=4))


@pytest.mark.parametrize("edge", ["exit", "end"])
def test_the_last_write_is_named(tmp_path: Path, edge: str) -> None:
    diff = trace_diff.compare([last_step(tmp_path / name, name, edge=edge) for name in "ab"])
    assert [(culprit["op_type"], culprit["class"], culprit["step"], culprit["line"]) for culprit in diff.culprits] == [
        (UPDATE, "unexplained", 3, 7)
    ]


def test_inputs_of_the_last_write_are_named_instead(tmp_path: Path) -> None:
    diff = trace_diff.compare([last_step(tmp_path / name, name, gradient=name, edge="end") for name in "ab"])
    assert [culprit["op_type"] for culprit in diff.culprits] == ["Mul"]


def test_state_that_differed_before_does_not_blame_the_last_write(tmp_path: Path) -> None:
    diff = trace_diff.compare([last_step(tmp_path / name, name, start_value=name) for name in "ab"])
    assert not diff.culprits
    assert any("differs already when recording begins" in note for note in diff.notes)


def test_an_assignment_of_a_differing_value_names_no_op(tmp_path: Path) -> None:
    """The op that made the value different was not recorded, such as one of a pipeline's function."""
    diff = trace_diff.compare([last_step(tmp_path / name, name, written="AssignVariableOp") for name in "ab"])
    assert (diff.result, diff.culprits) == ("same", [])


@pytest.mark.parametrize(
    ("written", "is_read_again", "accused"),
    [("AssignVariableOp", False, []), ("AssignVariableOp", True, ["AssignVariableOp"]), (UPDATE, False, [UPDATE])],
)
def test_which_last_writes_are_named(tmp_path: Path, written: str, is_read_again: bool, accused: list[str]) -> None:
    """With two writes, their order may differ."""

    def build(run: int) -> str:
        builder = TraceBuilder(tmp_path / f"{run}.tfdt")
        given = builder.eager("train.py:6#0", "Python", kind="feed")
        fields = {"kind": "write", "variable": "w", "output": -1}
        writes = [builder.eager(f"train.py:{7 + n}#0", written, (given,), **fields) for n in range(1 + is_read_again)]
        builder.record(given, 0)
        for write in writes:
            builder.write(write)
        builder.record(builder.eager("train.py:9#0", "ReadVariableOp", kind="read", variable="w"), run)
        return str(builder.end())

    diff = trace_diff.compare([build(0), build(1)])
    assert (diff.result, [culprit["op_type"] for culprit in diff.culprits]) == ("diverged", accused)
    assert bool(accused) != any("what writes it was not recorded" in note for note in diff.notes)


def test_a_variable_missing_at_the_end_of_one_run_is_no_structure(tmp_path: Path) -> None:
    diff = trace_diff.compare([last_step(tmp_path / name, end) for name, end in (("a", 1), ("b", None))])
    assert (diff.result, diff.missing) == ("same", 0)


@pytest.mark.parametrize(
    ("window", "expected"), [((2, 4), [(2, True), (3, False)]), ((0, 1), [(0, False)]), (None, [])]
)
def test_variables_are_read_at_both_ends_of_the_recorded_steps(
    window: tuple[int, int] | None, expected: list[tuple[int, bool]]
) -> None:
    calls = []
    steps = Steps(threading.RLock(), window, lambda: None)
    steps.add_window_callback(lambda begins: calls.append((steps.number, begins)))
    for _ in range(6):
        steps.end_step()
    assert calls == expected


def test_the_last_recorded_step_ends_the_program_in_its_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variables.STOP_AFTER, "2")
    steps = Steps(threading.RLock(), None, lambda: None)
    steps.on_optimizer_applied()
    steps.on_loop_iteration()  # within a graph, which no exception may leave
    thread = threading.Thread(target=steps.on_optimizer_applied)
    thread.start()
    thread.join()
    with pytest.raises(SystemExit) as raised:
        steps.on_call_end()
    assert (raised.value.code, steps.last) == (0, 3)
