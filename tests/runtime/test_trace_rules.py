"""Each rule of the debug tool alone: its findings have its class, and what it dismisses is no cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from traces import TraceBuilder

from tfdeterminism.trace.align.table import AlignedPair, TraceTable
from tfdeterminism.trace.causes import dismissals, rules
from tfdeterminism.trace.causes.cause_facts import CauseFacts, PairFacts
from tfdeterminism.trace.causes.find_causes import PairAnalysis
from tfdeterminism.trace.causes.rules import RULES
from tfdeterminism.trace.faults import Fault

# (trace, number of the run) -> fields of the trace's end. In eager(), FILE:LINE#N is the N-th op of a line.
Build = Callable[[TraceBuilder, int], dict[str, Any] | None]
# A file that the program opened: its time of change, the stack of the first read, the line that wrote it, if any.
CHANGED = {"path": "/w/data.npy", "changed": 0.0, "by": [["/w/train.py", 9, "f"]], "writes": None, "own": False,
           "defined": 0, "temporary": False}  # fmt: skip


def files(run: int) -> dict[str, Any]:
    """Return a file that line 9 read and that differs between the runs."""
    return {"files": [{**CHANGED, "reads": str(run)}]}


def structure(builder: TraceBuilder, run: int) -> None:
    builder.record(builder.op("a"), 0)
    if run:
        builder.record(builder.op("b"), 0)


def order(builder: TraceBuilder, run: int) -> None:
    word = builder.eager("train.py:3#0", "Mul")
    for value in (1, 2) if run else (2, 1):
        builder.record(word, value)


def unordered(builder: TraceBuilder, run: int) -> None:
    handle = builder.op("w", "VarHandleOp", variable="w", recorded=False)
    attrs = {"unordered": "in any order"}
    up = builder.op("up", "AssignAddVariableOp", (handle,), kind="write", variable="w", attrs=attrs, output=-1)
    read = builder.op("read", "ReadVariableOp", (handle,), kind="read", variable="w")
    builder.write(up)
    builder.record(read, run)
    builder.record(builder.op("loss", "Mul", (read,)), run)


def one_op(op: str = "MatMul", kind: str = "op", **fields: Any) -> Build:
    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("x", op, kind=kind, **fields), run)

    return build


def value_from_file(op: str, kind: str) -> Build:
    def build(builder: TraceBuilder, run: int) -> dict[str, Any]:
        stack = [["/w/train.py", 9, "f"]]
        builder.record(builder.eager("train.py:9#0", op, kind=kind, stack=stack, line=9), run)
        return files(run)

    return build


def uninitialized(builder: TraceBuilder, run: int) -> None:
    empty = builder.eager("train.py:3#0", "aten.empty.memory_format", attrs={"uninitialized": True})
    builder.record(empty, run)
    builder.record(builder.eager("train.py:4#0", "aten.add.Tensor", (empty,)), run)


def seed(builder: TraceBuilder, run: int) -> None:
    value = builder.eager("train.py:3#0", "Python", kind="feed")
    builder.record(value, run)
    builder.record(builder.eager("train.py:3#0", "RandomUniform", (value,), kind="random"), run)


def variable_order(builder: TraceBuilder, run: int) -> None:
    handle = builder.op("w", "VarHandleOp", variable="w", recorded=False)
    up = builder.op("up", "AssignAdd", (handle,), kind="write", variable="w", output=-1)
    read = builder.op("read", "ReadVariableOp", (handle,), kind="read", variable="w")
    builder.write(up)
    builder.record(read, run)


def variable_race(builder: TraceBuilder, run: int) -> None:
    state = builder.op("state", "Variable", kind="read", variable="w", function="session", recorded=False)
    attrs = {"unordered": "in any order"}
    builder.write(builder.op("up", "AssignAdd", kind="write", variable="w", function="session", attrs=attrs, output=-1))
    builder.record(builder.op("double", "Mul", (state,), function="session"), run)


# {rule: a function that writes a run with the fault that the rule finds}; DISMISSED: faults that a rule drops.
FOUND: dict[str, Build] = {
    "structure": structure, "order": order, "unordered": unordered,
    "coarse_level": one_op("weight", "weight", variable="w"),
    "file_op": one_op("ReadFile", "op"),
    "uninitialized": uninitialized,
    "pipeline_file": value_from_file("IteratorGetNext", "input"),
    "pipeline": one_op("IteratorGetNext", "input"),
    "random_op": one_op("RandomUniform", "random"),
    "stateful_op": one_op("Timestamp", "stateful"),
    "seed_from_python": seed,
    "file_value": value_from_file("Python", "feed"),
    "host_value": one_op("Python", "feed"),
    "variable_order": variable_order, "variable_race": variable_race,
    "unexplained": one_op(),
}  # fmt: skip


def aligned_pair(folder: Path, build: Build) -> AlignedPair:
    runs = []
    for run in (0, 1):
        builder = TraceBuilder(folder / f"{run}.tfdt", cwd="/w")
        end = build(builder, run) or {}
        runs.append(TraceTable(str(builder.end(**end))))
    return AlignedPair(*runs)


def name_of(rule: Any) -> str:
    """Return the name of a rule, which is a module."""
    return rule.__name__.rpartition(".")[2]


@pytest.mark.parametrize("name", FOUND)
def test_a_rule_finds_its_fault(tmp_path: Path, name: str) -> None:
    pair = aligned_pair(tmp_path, FOUND[name])
    cause, *_ = PairAnalysis(pair).causes
    facts = CauseFacts(PairFacts(pair), cause)
    first = next(rule for rule in RULES if rule.matches(facts))
    assert name_of(first) == name
    assert rules.classify(facts) is first.FAULT


def test_a_state_is_classified_where_it_is_suspected(tmp_path: Path) -> None:
    """State from before the recording is no cause beside others, and has its own class."""
    pair = aligned_pair(tmp_path, one_op("ReadVariableOp", "read", variable="w"))
    analysis = PairAnalysis(pair)
    assert analysis.causes == []
    assert rules.classify(CauseFacts(PairFacts(pair), analysis.initial_difference)) == Fault.SEED


@pytest.mark.parametrize("rule", [*RULES, *dismissals.DISMISSALS, dismissals.report_only], ids=name_of)
def test_the_docstring_of_a_rule_has_finding_reason_and_example(rule: Any) -> None:
    text = rule.__doc__ or ""
    assert [word for word in ("Finds: ", "Why: ", "Example: ") if word not in text] == []


def test_every_rule_has_its_test() -> None:
    assert {name_of(rule) for rule in RULES} - {"state"} == set(FOUND)
    folder = Path(rules.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == {name_of(rule) for rule in RULES}
    assert {path.stem for path in Path(dismissals.__file__).parent.glob("*.py")} - {"__init__"} == set(DISMISSED)


def inert_string(builder: TraceBuilder, run: int) -> None:
    builder.record(builder.op("path", "MktempOp", dtype="string"), run)
    builder.record(builder.op("a"), 0)


def unused_memory(builder: TraceBuilder, run: int) -> None:
    empty = builder.eager("train.py:3#0", "aten.empty.memory_format", attrs={"uninitialized": True})
    builder.record(empty, run)
    builder.record(builder.eager("train.py:4#0", "aten.zero_.default", (empty,)), 0)


def masked(builder: TraceBuilder, run: int) -> None:
    clock = builder.op("clock", "Timestamp", kind="stateful")
    builder.record(clock, run)
    builder.record(builder.op("later", "Greater", (clock,)), True)
    builder.record(builder.op("loss"), run)


def overtaken(builder: TraceBuilder, run: int) -> None:
    row = builder.op("row", "Mul")
    for value in (1, 2) if run else (2, 1):
        builder.record(row, value)


def report_only(builder: TraceBuilder, run: int) -> None:
    """The program trains with noise, and only fetches the value of `told`."""
    state = builder.op("state", "Variable", kind="read", variable="w", function="session", recorded=False)
    attrs = {"unordered": "in any order"}
    builder.write(builder.op("up", "AssignAdd", kind="write", variable="w", function="session", attrs=attrs, output=-1))
    builder.record(builder.op("told", "Mul", (state,), function="session"), run)
    noise = builder.op("noise", "RandomUniform", kind="random", function="session")
    builder.record(noise, run)
    train = builder.op("train", "ApplyAdam", (noise,), kind="write", variable="v", function="session", output=-1)
    builder.write(train)


DISMISSED: dict[str, tuple[Build, list[str]]] = {
    "inert_string": (inert_string, []), "unused_memory": (unused_memory, []), "overtaken": (overtaken, []),
    "masked": (masked, ["loss"]), "report_only": (report_only, ["noise"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DISMISSED)
def test_a_dismissed_difference_is_no_cause(tmp_path: Path, name: str) -> None:
    build, causes = DISMISSED[name]
    analysis = PairAnalysis(aligned_pair(tmp_path, build))
    assert [root.definition["node"] for root in analysis.causes] == causes
    if name != "report_only":
        assert analysis.dismissed[getattr(dismissals, name)] > 0
