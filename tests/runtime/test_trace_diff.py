"""`trace diff` on handwritten traces: which records correspond, and which differs first.

A TraceBuilder writes one trace: op() and eager() define ops and return their keys, record(key, value, step) records an
output; FILE:LINE#N is the N-th op of a line. A trace differs in structure if its run executes other ops.
The fixture compare(build) writes two traces by build(builder, run) for run 0 and 1, and returns their TraceDiff.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import write_trace
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.commands import diff
from tfdeterminism.trace.report import text


def names(result: TraceDiff) -> list[str]:
    return [culprit["op_name"] for culprit in result.culprits]


def test_equal_runs_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.tfdt", tmp_path / "b.tfdt"]
    for path in paths:
        write_trace(str(path))
    assert diff.main([str(path) for path in paths]) == 0
    assert "The runs are the same: 500 records compared." in capsys.readouterr().out


def test_the_first_op_whose_inputs_agree_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, name in enumerate("ab"):
        write_trace(str(tmp_path / f"{name}.tfdt"), differs=[(7, 13)], seed=seed)  # (step, op number)
    assert diff.main([str(tmp_path / "a.tfdt"), str(tmp_path / "b.tfdt"), "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert (output["result"], output["first_step"]) == ("diverged", 7)
    (culprit,) = output["culprits"]
    expected = {"op_type": "MatMul", "op_name": "op13", "step": 7, "file": "train.py", "line": 23, "forward_op": None}
    assert expected.items() <= culprit.items()
    assert {"device", "class", "source", "advice"} <= set(culprit)
    # A step is (number, records, differing records).
    assert (output["steps"][6][2], output["steps"][7][2], output["steps"][8][2]) == (0, 37, 50)
    window = {item["name"]: item["state"] for item in output["first_difference_window"]}
    assert [window[name] for name in ("op12", "op13", "op14")] == ["same", "culprit", "differs"]


def test_records_in_another_order_are_the_same(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        keys = [builder.op(f"op{number}") for number in range(6)]
        for step in range(3):
            for key in random.Random(10 * run + step).sample(keys, 6):
                builder.record(key, (key, step), step)

    assert compare(build).result == "same"


@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_interleaving_names_the_same_culprit(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A random graph in two random topological orders; one op and its consumers differ."""
    size = data.draw(st.integers(2, 12))
    wiring = [data.draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else set() for number in range(size)]
    culprit = data.draw(st.integers(0, size - 1))
    spoiled = {culprit}
    for number in range(size):
        if wiring[number] & spoiled:
            spoiled.add(number)
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path_factory.mktemp("t") / "x.tfdt")
        order = data.draw(st.permutations(range(size)))
        ids: dict[int, int] = {}
        while len(ids) < size:
            ready = next(n for n in order if n not in ids and wiring[n] <= set(ids))
            ids[ready] = builder.op(f"op{ready}", inputs=tuple(ids[n] for n in sorted(wiring[ready])))
        for step in range(2):
            for number in ids:
                builder.record(ids[number], (number, step, run if step == 1 and number in spoiled else 0), step)
        paths.append(str(builder.end()))
    result = trace_diff.compare(paths)
    assert names(result) == [f"op{culprit}"]
    assert result.first_step == 1


def test_a_string_is_a_cause_only_of_numbers_that_differ(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int, number: int) -> None:
        name = builder.eager("train.py:1#0", "Python", kind="feed", dtype="string")
        path = builder.op("path", "StringJoin", (name,), dtype="string")
        hashed = builder.op("hashed", "StringToHashBucket", (path,), dtype="int64")
        for key, value in ((name, run), (path, run), (hashed, number)):
            builder.record(key, value)

    result = compare(lambda builder, run: build(builder, run, 0))
    assert (result.result, result.culprits, result.differing) == ("same", [], 0)
    assert any("2 strings differ" in note for note in result.notes)
    result = compare(lambda builder, run: build(builder, run, run))
    assert (result.result, [culprit["op_type"] for culprit in result.culprits]) == ("diverged", ["Python"])


def test_an_op_that_only_one_run_has_is_structure(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        product = builder.op("MatMul")
        extra = builder.op("Softplus", "Softplus", (product,), line=77) if run else product
        loss = builder.op("Sub", "Sub", (extra,))
        for step in range(2):
            builder.record(product, step, step)
            if run:
                builder.record(extra, step + 100, step)
            builder.record(loss, (step, run), step)

    result = compare(build)
    assert result.result == "structure"
    assert (names(result), result.culprits[0]["class"], result.culprits[0]["line"]) == (["Softplus"], "structure", 77)
    assert trace_diff.CODES[result.result] == 1


def test_a_value_that_decides_the_structure_comes_first(compare: Callable[..., TraceDiff]) -> None:
    """The predicate differs; the other branch is a consequence."""

    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.op("PyFunc", "PyFunc", kind="feed")
        branches = [builder.op(f"branch{number}", "Mul") for number in range(2)]
        builder.record(noise, run)
        builder.record(branches[run], 1)

    result = compare(build)
    assert result.result == "structure"
    assert names(result)[0] == "PyFunc"


def test_reads_of_a_variable_are_no_causes(compare: Callable[..., TraceDiff]) -> None:
    """After a differing write, twenty reads of the variable differ: one cause."""

    def build(builder: TraceBuilder, run: int) -> None:
        reads = [builder.op(f"Read{n}", "ReadVariableOp", kind="read", variable="w") for n in range(20)]
        gradient = builder.op("Grad", "Conv2DBackpropFilter", (reads[0],), device="/device:GPU:0")
        write = builder.op("Assign", "AssignSubVariableOp", (gradient,), kind="write", variable="w", output=-1)
        weight = 0
        for step in range(3):
            for read in reads:
                builder.record(read, weight, step)
            change = (step, run) if step == 1 else step
            builder.record(gradient, (weight, change), step)
            builder.write(write, step)
            weight = (weight, change)

    result = compare(build)
    assert (names(result), result.first_step) == (["Grad"], 1)
    assert result.culprits[0]["source"] == "cudnn-conv-backprop-filter"
    assert result.culprits[0]["solution"] == "TEOD"


def test_a_write_that_races_is_the_cause(compare: Callable[..., TraceDiff]) -> None:
    """All inputs of a scatter agree; the values that are read afterwards differ."""

    def build(builder: TraceBuilder, run: int) -> None:
        read = builder.op("Read", "ReadVariableOp", kind="read", variable="w")
        slices = builder.op("Slices", "Mul", (read,))
        scatter = builder.op(
            "Scatter", "ResourceScatterAdd", (slices,), kind="write", variable="w", output=-1, device="/device:GPU:0"
        )
        for step in range(3):
            late = run if step > 1 else 0
            builder.record(read, (step, late), step)
            builder.record(slices, (step, late), step)
            builder.write(scatter, step)

    result = compare(build)
    assert names(result) == ["Scatter"]
    assert (result.culprits[0]["step"], result.culprits[0]["source"]) == (1, "resource-scatter-ops")


def test_a_read_by_indices_follows_from_them(compare: Callable[..., TraceDiff]) -> None:
    """A gather reads a variable, too: other indices read other rows."""

    def build(builder: TraceBuilder, run: int) -> None:
        write = builder.eager("train.py:3#0", "AssignVariableOp", kind="write", variable="w", output=-1)
        indices = builder.op("numbers", "Placeholder", kind="feed")
        rows = builder.op("Gather", "ResourceGather", (indices,), kind="read", variable="w")
        builder.write(write)
        builder.record(indices, run)
        builder.record(rows, run)

    assert names(compare(build)) == ["numbers"]


def test_iterations_that_overtake_each_other_are_the_same(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        turn = builder.op("while/Mul", "Mul", function="body")
        total = builder.op("Sum", "Sum", (turn,))
        for value in ([1, 2, 3], [2, 1, 3])[run]:
            builder.record(turn, value)
        builder.record(total, 6)

    result = compare(build)
    assert (result.result, result.reordered) == ("same", 1)
    assert "another order, values equal" in text.diff_text(result)


def test_an_order_that_python_decides_is_a_cause(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        total = None
        for number, value in enumerate(([1.0, 2e16, 3.0], [2e16, 3.0, 1.0])[run]):
            part = builder.eager(f"train.py:5#{number}", "Square", line=5)
            builder.record(part, value)
            inputs = (part,) if total is None else (part, total)
            total = builder.eager(f"train.py:6#{number}", "AddV2", inputs, line=6)
            builder.record(total, (run, number))

    result = compare(build)
    assert result.result == "diverged"
    assert (result.culprits[0]["class"], result.culprits[0]["line"]) == ("order only", 5)
    assert result.culprits[0]["source"] is None, "hashes need not be what decides it"


def test_a_cause_inside_a_loop(compare: Callable[..., TraceDiff]) -> None:
    """Noise in the second iteration changes the state of the third, whose ops are no causes."""

    def build(builder: TraceBuilder, run: int) -> None:
        state = builder.op("arg", "_Arg", function="body", kind="argument")
        step_op = builder.op("Tanh", "Tanh", (state,), function="body")
        noise = builder.op("PyFunc", "PyFunc", (step_op,), function="body", kind="feed", line=55)
        added = builder.op("Add", "AddV2", (step_op, noise), function="body")
        loop = builder.op("while", "While", calls=[["body", 0]], kind="call")
        value: object = 0
        for turn in range(4):
            for key, bad in ((state, 2), (step_op, 2), (noise, 1), (added, 1)):
                value = (key, turn, run if turn >= bad else 0)
                builder.record(key, value)
        builder.record(loop, value)

    result = compare(build)
    assert (names(result), result.culprits[0]["line"], result.culprits[0]["occurrence"]) == (["PyFunc"], 55, 1)
    assert result.culprits[0]["class"] == "Python feed"


def test_an_argument_follows_from_the_call(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.eager("train.py:3#0", "RandomUniform", kind="random", line=3)
        argument = builder.op("x", "Placeholder", kind="argument", file=None, line=0)
        inner = builder.op("Mul", "Mul", (argument,))
        call = builder.eager("train.py:9#0", "PartitionedCall", (noise,), kind="call", calls=[["train_step", 0]])
        for key in (noise, argument, inner, call):
            builder.record(key, (key, run))

    result = compare(build)
    assert names(result) == ["RandomUniform@train.py:3#0"]
    assert (result.culprits[0]["class"], result.culprits[0]["source"]) == ("seed or state", "random-op-without-seed")


def test_ops_that_take_from_a_pipeline_in_one_line_are_one_cause(compare: Callable[..., TraceDiff]) -> None:
    """Keras in TensorFlow 2.0 reads the first element with another op than the rest."""

    def build(builder: TraceBuilder, run: int) -> None:
        first = builder.eager("train.py:3", "IteratorGetNextSync", kind="input", file="train.py", line=3)
        rest = builder.op("IteratorGetNext", "IteratorGetNext", kind="input", file="train.py", line=3)
        for key in (first, rest, builder.op("MatMul", inputs=(first, rest))):
            builder.record(key, (key, run))

    assert [culprit["op_type"] for culprit in compare(build).culprits] == ["IteratorGetNextSync"]


def test_independent_causes_are_listed_the_first_first(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        first = builder.op("PyFunc", "PyFunc", kind="feed")
        second = builder.op("Timestamp", "Timestamp", kind="stateful")
        total = builder.op("Add", "AddV2", (first, second))
        for key in (first, second, total):
            builder.record(key, (key, run))

    result = compare(build)
    assert names(result) == ["PyFunc", "Timestamp"]
    assert [culprit["source"] for culprit in result.culprits] == [None, "timestamp"]
