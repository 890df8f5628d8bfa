"""`trace diff` on handwritten traces: differences that are no causes, as they lead nowhere or follow from others.

A TraceBuilder's op() and eager() define ops and return their keys: recorded=False, it has no records; calls, the
[function, trace] that it runs; output=-1, it writes a variable. record() and write() record executions of ops.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traces import TraceBuilder

from tfdeterminism.trace.causes.trace_diff import TraceDiff


def test_a_value_that_chooses_the_branch_is_the_cause(compare: Callable[..., TraceDiff]) -> None:
    """The argument of a call is recorded when the call ends, after all of its ops."""

    def build(builder: TraceBuilder, run: int) -> None:
        chosen = builder.eager("train.py:3#0", "Python", kind="feed", line=3)
        builder.eager("train.py:4#0", "PartitionedCall", (chosen,), kind="call", calls=[["train", 0]], recorded=False)
        argument = builder.op("odd", "Placeholder", kind="argument", function="train", recorded=False)
        builder.op(
            "cond", "If", (argument,), kind="call", calls=[["yes", 0], ["no", 0]], function="train", recorded=False
        )
        branches = [builder.op(name, "Tanh", function=name, line=9) for name in ("yes", "no")]
        builder.record(branches[run], 1)
        builder.record(chosen, run)

    diff = compare(build)
    assert [(culprit["op_type"], culprit["class"], culprit["line"]) for culprit in diff.culprits] == [
        ("Python", "Python feed", 3)
    ]


def test_a_differing_branch_without_differing_predicate_is_structure(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        other = builder.eager("train.py:3#0", "Python", kind="feed", line=3)
        used = builder.eager("train.py:5#0", "Sum", (other,), line=5)
        branches = [builder.op(name, "Tanh", function=name, line=9) for name in ("yes", "no")]
        builder.record(branches[run], 1)
        builder.record(other, run)
        builder.record(used, run)

    assert [culprit["class"] for culprit in compare(build).culprits][:1] == ["structure"]


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("used", ["fetched", "computed with", "written"])
def test_a_read_that_races_with_a_write_is_no_cause_beside_another_if_it_is_only_fetched(
    compare: Callable[..., TraceDiff], beside: bool, used: str
) -> None:
    """A session run fetches a counter and increments it; no trained value depends on their order."""

    def build(builder: TraceBuilder, run: int) -> None:
        handle = builder.op("steps", "VarHandleOp", variable="steps", dtype="resource", recorded=False)
        initial_write = builder.op(
            "steps/Assign", "AssignVariableOp", (handle,), kind="write", variable="steps", line=1
        )
        read = builder.op("steps/Read", "ReadVariableOp", (handle,), kind="read", variable="steps", line=2)
        addition = builder.op("add", "AddV2", (read,), line=2)
        attrs = {"unordered": "in any order"}
        up = builder.op("up", "AssignAddVariableOp", (handle,), kind="write", variable="steps", attrs=attrs, line=3)
        builder.write(initial_write)
        if beside:
            builder.record(builder.op("rows", "Const", line=4), run)
        builder.record(read, run)
        if used != "fetched":
            builder.record(addition, run)
        if used == "written":
            builder.write(builder.op("w/Assign", "AssignVariableOp", (addition,), kind="write", variable="w", line=2))
        builder.write(up)

    diff = compare(build)
    race = [("AssignAddVariableOp", "unordered access", 3)] if used == "written" or not beside else []
    assert sorted((culprit["op_type"], culprit["class"], culprit["line"]) for culprit in diff.culprits) == [
        *race, *([("Const", "Python feed", 4)] if beside else [])]  # fmt: skip
    assert [access["op"] for access in diff.unordered] == ["AssignAddVariableOp"], "it is told beside"


@pytest.mark.parametrize(
    ("through", "expected"),
    [("input", [("RandomUniform", "seed or state")]),
     ("itself", [("AssignVariableOp", "order only"), ("RandomUniform", "seed or state")]),
     ("nobody", [("AssignVariableOp", "order only")])],
)  # fmt: skip
def test_a_differing_read_without_unordered_write_is_a_cause(
    compare: Callable[..., TraceDiff], through: str, expected: list[tuple[str, str]]
) -> None:
    """The written value differs, or depends on the read, or the write is ordered."""

    def build(builder: TraceBuilder, run: int) -> None:
        initial_write = builder.op("w/Assign", "AssignVariableOp", kind="write", variable="w", line=1)
        draw = builder.op("draw", "RandomUniform", kind="random", line=2)
        read = builder.op("w/Read", "ReadVariableOp", kind="read", variable="w", line=4)
        inputs = (draw, read) if through == "itself" else (draw,)
        attrs = {} if through == "nobody" else {"unordered": "in any order"}
        change = builder.op("up", "AssignSubVariableOp", inputs, kind="write", variable="w", attrs=attrs, line=3)
        builder.write(initial_write)
        builder.record(draw, 1 if through == "nobody" else run)
        builder.record(read, run)
        builder.write(change)

    assert [(culprit["op_type"], culprit["class"]) for culprit in compare(build).culprits] == expected


@pytest.mark.parametrize("restored", [True, False])
def test_a_value_overwritten_before_any_read_is_no_cause(compare: Callable[..., TraceDiff], restored: bool) -> None:
    """Random initial weights are replaced by those of a checkpoint."""

    def build(builder: TraceBuilder, run: int) -> None:
        draws = [builder.eager(f"train.py:{line}#0", "RandomUniform", kind="random", line=line) for line in (2, 3)]
        writes = [
            builder.eager(f"train.py:{line}#0", "AssignVariableOp", (draw,), kind="write", variable=name, output=-1)
            for line, draw, name in zip((2, 3), draws, ("body", "head"), strict=True)
        ]
        reads = [
            builder.eager(f"train.py:{line}#0", "ReadVariableOp", kind="read", variable=name, line=line)
            for line, name in ((7, "body"), (8, "head"))
        ]
        for draw, write in zip(draws, writes, strict=True):
            builder.record(draw, (draw, run))
            builder.write(write)
        builder.record(reads[0], 0 if restored else run)
        builder.record(reads[1], run)
        builder.record(reads[0], run, 1)  # trained by what the head gives

    assert [culprit["line"] for culprit in compare(build).culprits] == ([3] if restored else [2, 3])
