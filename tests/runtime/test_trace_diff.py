"""`trace diff` on traces written by hand: alignment, causes, classes, bad input."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import Hand

from tfdeterminism.trace import diff, synthetic
from tfdeterminism.trace import format as trace_format

Build = Callable[[Hand, int], object]  # (trace, number of the run) -> records


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    numbers = itertools.count()

    def made(build: Build, run: int, end: bool = True, **header: Any) -> Path:
        hand = Hand(tmp_path / f"{next(numbers)}.tfdt", **header)
        build(hand, run)
        return hand.end() if end else hand.killed()

    return made


@pytest.fixture
def compare(make: Callable[..., Path]) -> Callable[..., diff.Difference]:
    """compare(build): of run 0 and run 1 of what build writes."""

    def compared(build: Build, **header: Any) -> diff.Difference:
        return diff.compare([str(make(build, run, **header)) for run in (0, 1)])

    return compared


def names(found: diff.Difference) -> list[str]:
    return [culprit["op_name"] for culprit in found.culprits]


def test_equal_runs_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a.tfdt", tmp_path / "b.tfdt"]
    for path in paths:
        synthetic.write(str(path))
    assert diff.main([str(path) for path in paths]) == 0
    assert "The runs are the same: 500 records compared." in capsys.readouterr().out


def test_the_first_op_whose_inputs_agree_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, name in enumerate("ab"):
        synthetic.write(str(tmp_path / f"{name}.tfdt"), differs=[(7, 13)], seed=seed)
    assert diff.main([str(tmp_path / "a.tfdt"), str(tmp_path / "b.tfdt"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["result"], found["first_step"]) == ("diverged", 7)
    (culprit,) = found["culprits"]
    expected = {"op_type": "MatMul", "op_name": "op13", "step": 7, "file": "train.py", "line": 23, "forward_op": None}
    assert expected.items() <= culprit.items()
    assert {"device", "class", "source", "advice"} <= set(culprit)
    assert (found["steps"][6][2], found["steps"][7][2], found["steps"][8][2]) == (0, 37, 50)
    assert [one["state"] for one in found["front"] if one["name"] in ("op12", "op13", "op14")] == [
        "same", "culprit", "differs"]  # fmt: skip


def test_records_in_another_order_are_the_same(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        keys = [hand.op(f"op{number}") for number in range(6)]
        for step in range(3):
            for key in random.Random(10 * run + step).sample(keys, 6):
                hand.record(key, (key, step), step)

    assert compare(build).result == "same"


@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_interleaving_names_the_same_culprit(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A random graph, recorded in two random topological orders; one op differs, and what it feeds."""
    size = data.draw(st.integers(2, 12))
    wiring = [data.draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else set() for number in range(size)]
    culprit = data.draw(st.integers(0, size - 1))
    spoiled = {culprit}
    for number in range(size):
        if wiring[number] & spoiled:
            spoiled.add(number)
    paths = []
    for run in range(2):
        hand = Hand(tmp_path_factory.mktemp("t") / "x.tfdt")
        order = data.draw(st.permutations(range(size)))
        ids: dict[int, int] = {}
        while len(ids) < size:
            ready = next(n for n in order if n not in ids and wiring[n] <= set(ids))
            ids[ready] = hand.op(f"op{ready}", inputs=tuple(ids[n] for n in sorted(wiring[ready])))
        for step in range(2):
            for number in ids:
                hand.record(ids[number], (number, step, run if step == 1 and number in spoiled else 0), step)
        paths.append(str(hand.end()))
    found = diff.compare(paths)
    assert names(found) == [f"op{culprit}"]
    assert found.first_step == 1


def test_a_string_is_a_cause_only_of_numbers_that_differ(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int, number: int) -> None:
        name = hand.eager("train.py:1#0", "Python", kind="feed", dtype="string")
        path = hand.op("path", "StringJoin", (name,), dtype="string")
        hashed = hand.op("hashed", "StringToHashBucket", (path,), dtype="int64")
        for key, value in ((name, run), (path, run), (hashed, number)):
            hand.record(key, value)

    found = compare(lambda hand, run: build(hand, run, 0))
    assert (found.result, found.culprits, found.differing) == ("same", [], 0)
    assert any("2 strings differ" in note for note in found.notes)
    found = compare(lambda hand, run: build(hand, run, run))
    assert (found.result, [culprit["op_type"] for culprit in found.culprits]) == ("diverged", ["Python"])


def test_a_key_that_only_one_run_has_is_structure(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        product = hand.op("MatMul")
        extra = hand.op("Softplus", "Softplus", (product,), line=77) if run else product
        loss = hand.op("Sub", "Sub", (extra,))
        for step in range(2):
            hand.record(product, step, step)
            if run:
                hand.record(extra, step + 100, step)
            hand.record(loss, (step, run), step)

    found = compare(build)
    assert found.result == "structure"
    assert (names(found), found.culprits[0]["class"], found.culprits[0]["line"]) == (["Softplus"], "structure", 77)
    assert diff.CODES[found.result] == 2


def test_a_value_that_decides_the_structure_comes_first(compare: Callable[..., diff.Difference]) -> None:
    """The predicate differs, so another branch is taken: the branch is a consequence."""

    def build(hand: Hand, run: int) -> None:
        noise = hand.op("PyFunc", "PyFunc", kind="feed")
        taken = [hand.op(f"branch{number}", "Mul") for number in range(2)]
        hand.record(noise, run)
        hand.record(taken[run], 1)

    found = compare(build)
    assert found.result == "structure"
    assert names(found)[0] == "PyFunc"


def test_reads_of_a_variable_are_no_causes(compare: Callable[..., diff.Difference]) -> None:
    """After a difference was written, every read of the variable differs: one cause, not twenty."""

    def build(hand: Hand, run: int) -> None:
        reads = [hand.op(f"Read{n}", "ReadVariableOp", kind="read", variable="w") for n in range(20)]
        gradient = hand.op("Grad", "Conv2DBackpropFilter", (reads[0],), device="/device:GPU:0")
        write = hand.op("Assign", "AssignSubVariableOp", (gradient,), kind="write", variable="w", output=-1)
        weight = 0
        for step in range(3):
            for read in reads:
                hand.record(read, weight, step)
            change = (step, run) if step == 1 else step
            hand.record(gradient, (weight, change), step)
            hand.write(write, step)
            weight = (weight, change)

    found = compare(build)
    assert (names(found), found.first_step) == (["Grad"], 1)
    assert found.culprits[0]["source"] == "cudnn-conv-backprop-filter"
    assert found.culprits[0]["solution"] == "TEOD"


def test_a_write_that_races_is_the_cause(compare: Callable[..., diff.Difference]) -> None:
    """All that a scatter gets agrees; what is read afterwards differs."""

    def build(hand: Hand, run: int) -> None:
        read = hand.op("Read", "ReadVariableOp", kind="read", variable="w")
        slices = hand.op("Slices", "Mul", (read,))
        scatter = hand.op(
            "Scatter", "ResourceScatterAdd", (slices,), kind="write", variable="w", output=-1, device="/device:GPU:0"
        )
        for step in range(3):
            late = run if step > 1 else 0
            hand.record(read, (step, late), step)
            hand.record(slices, (step, late), step)
            hand.write(scatter, step)

    found = compare(build)
    assert names(found) == ["Scatter"]
    assert (found.culprits[0]["step"], found.culprits[0]["source"]) == (1, "resource-scatter-ops")


def test_a_read_by_indices_follows_from_them(compare: Callable[..., diff.Difference]) -> None:
    """A gather reads a variable too: other indices give other rows of the same variable."""

    def build(hand: Hand, run: int) -> None:
        write = hand.eager("train.py:3#0", "AssignVariableOp", kind="write", variable="w", output=-1)
        indices = hand.op("numbers", "Placeholder", kind="feed")
        rows = hand.op("Gather", "ResourceGather", (indices,), kind="read", variable="w")
        hand.write(write)
        hand.record(indices, run)
        hand.record(rows, run)

    assert names(compare(build)) == ["numbers"]


def test_iterations_that_overtake_each_other_are_the_same(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        turn = hand.op("while/Mul", "Mul", function="body")
        total = hand.op("Sum", "Sum", (turn,))
        for value in ([1, 2, 3], [2, 1, 3])[run]:
            hand.record(turn, value)
        hand.record(total, 6)

    found = compare(build)
    assert (found.result, found.reordered) == ("same", 1)
    assert "another order, values equal" in diff.text(found)


def test_an_order_that_python_decides_is_a_cause(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        total = None
        for number, value in enumerate(([1.0, 2e16, 3.0], [2e16, 3.0, 1.0])[run]):
            part = hand.eager(f"train.py:5#{number}", "Square", line=5)
            hand.record(part, value)
            inputs = (part,) if total is None else (part, total)
            total = hand.eager(f"train.py:6#{number}", "AddV2", inputs, line=6)
            hand.record(total, (run, number))

    found = compare(build)
    assert found.result == "diverged"
    assert (found.culprits[0]["class"], found.culprits[0]["line"]) == ("order only", 5)
    assert found.culprits[0]["source"] == "python-set-order"


def test_a_cause_inside_a_loop(compare: Callable[..., diff.Difference]) -> None:
    """Noise in the second turn spoils the state of the third: the state's ops are no causes."""

    def build(hand: Hand, run: int) -> None:
        state = hand.op("arg", "_Arg", function="body", kind="argument")
        step_op = hand.op("Tanh", "Tanh", (state,), function="body")
        noise = hand.op("PyFunc", "PyFunc", (step_op,), function="body", kind="feed", line=55)
        added = hand.op("Add", "AddV2", (step_op, noise), function="body")
        loop = hand.op("while", "While", calls=[["body", 0]], kind="call")
        value: object = 0
        for turn in range(4):
            for key, bad in ((state, 2), (step_op, 2), (noise, 1), (added, 1)):
                value = (key, turn, run if turn >= bad else 0)
                hand.record(key, value)
        hand.record(loop, value)

    found = compare(build)
    assert (names(found), found.culprits[0]["line"], found.culprits[0]["occurrence"]) == (["PyFunc"], 55, 1)
    assert found.culprits[0]["class"] == "Python feed"


def test_an_argument_follows_from_the_call(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        noise = hand.eager("train.py:3#0", "RandomUniform", kind="random", line=3)
        argument = hand.op("x", "Placeholder", kind="argument", file=None, line=0)
        inner = hand.op("Mul", "Mul", (argument,))
        call = hand.eager("train.py:9#0", "PartitionedCall", (noise,), kind="call", calls=[["train_step", 0]])
        for key in (noise, argument, inner, call):
            hand.record(key, (key, run))

    found = compare(build)
    assert names(found) == ["RandomUniform@train.py:3#0"]
    assert (found.culprits[0]["class"], found.culprits[0]["source"]) == ("seed or state", "random-op-without-seed")


def test_an_argument_from_python_is_shown_where_the_call_is(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        argument = hand.op("x", "Placeholder", kind="argument", file=None, line=0)
        call = hand.eager("train.py:9#0", "PartitionedCall", (), kind="call", calls=[["train_step", 0]], line=9)
        for key in (argument, call):
            hand.record(key, (key, run))

    (culprit,) = compare(build).culprits
    assert (culprit["class"], culprit["file"], culprit["line"]) == ("Python feed", "train.py", 9)


def test_a_gradient_names_its_forward_op_and_line(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        crops = hand.op("CropAndResize", "CropAndResize", line=30)
        gradient = hand.op(
            "grad", "CropAndResizeGradImage", (crops,), forward="CropAndResize", function="backward", line=40
        )
        hand.record(crops, 1)
        hand.record(gradient, run)

    (culprit,) = compare(build).culprits
    assert (culprit["op_type"], culprit["forward_op"], culprit["line"]) == (
        "CropAndResizeGradImage", "CropAndResize", 30)  # fmt: skip
    assert culprit["source"] == "crop-and-resize-backprop"


def test_the_forward_op_of_an_eager_gradient(compare: Callable[..., diff.Difference]) -> None:
    """No graph names it: it has the type that the gradient's type names, and an input in common."""

    def build(hand: Hand, run: int) -> None:
        boxes = hand.eager("train.py:2#0", "Python", kind="feed", line=2)
        other = hand.eager("train.py:3#0", "CropAndResize", line=3)
        crops = hand.eager("train.py:4#0", "CropAndResize", (boxes,), line=4)
        gradient = hand.eager("train.py:9#0", "CropAndResizeGradImage", (boxes,), line=9)
        for key in (boxes, other, crops):
            hand.record(key, key)
        hand.record(gradient, run)

    (culprit,) = compare(build).culprits
    assert (culprit["forward_op"], culprit["line"]) == ("CropAndResize", 4)


@pytest.mark.parametrize(
    ("gradient", "forward"),
    [
        ("Conv2DBackpropFilter", "Conv2D"),
        ("Conv3DBackpropFilterV2", "Conv3D"),
        ("MaxPoolGradWithArgmax", "MaxPoolWithArgmax"),
        ("FusedBatchNormGradV3", "FusedBatchNormV3"),
        ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNative"),
        ("MatMul", None),
    ],
)
def test_what_a_gradient_is_named_after(
    compare: Callable[..., diff.Difference], gradient: str, forward: str | None
) -> None:
    def build(hand: Hand, run: int) -> None:
        data = hand.eager("train.py:2#0", "Python", kind="feed")
        hand.eager("train.py:3#0", forward or "Add", (data,))
        hand.record(data, 1)
        hand.record(hand.eager("train.py:4#0", gradient, (data,)), run)

    assert compare(build).culprits[0]["forward_op"] == forward


def test_independent_causes_are_listed_the_first_first(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        first = hand.op("PyFunc", "PyFunc", kind="feed")
        second = hand.op("Timestamp", "Timestamp", kind="state")
        both = hand.op("Add", "AddV2", (first, second))
        for key in (first, second, both):
            hand.record(key, (key, run))

    found = compare(build)
    assert names(found) == ["PyFunc", "Timestamp"]
    assert [one["source"] for one in found.culprits] == [None, "timestamp"]


def test_the_pipeline_is_named_by_the_line_of_its_map(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        mapped = hand.eager("train.py:4#0", "ParallelMapDatasetV2", recorded=False, line=4)
        iterator = hand.eager("train.py:6#0", "MakeIterator", (mapped,), recorded=False, line=6)
        batch = hand.eager("train.py:7#0", "IteratorGetNext", (iterator,), kind="input", line=7)
        hand.record(batch, run)

    (culprit,) = compare(build).culprits
    assert (culprit["op_type"], culprit["class"], culprit["line"]) == ("IteratorGetNext", "input pipeline", 4)
    assert (culprit["source"], culprit["solution"]) == ("tf-data-parallel-map", "ONEWORKER")


@pytest.mark.parametrize(
    ("version", "device", "solution"),
    [
        ("2.21.0", "CPU", "TEOD"),
        ("2.7.0", "CPU", "TDO"),
        ("2.0.0", "CPU", "ED"),  # measured there; before 2.6 TensorFlow has no switch that helps
        ("1.14.0", "CPU", "ED"),
        ("2.21.0", "GPU", None),
    ],
)
def test_the_solution_is_the_one_of_this_version_and_device(
    compare: Callable[..., diff.Difference], version: str, device: str, solution: str | None
) -> None:
    def build(hand: Hand, run: int) -> None:
        hand.record(hand.op("grad", "CropAndResizeGradImage", device=f"/device:{device}:0"), run)

    (culprit,) = compare(build, tensorflow=version).culprits
    assert culprit["solution"] == solution
    assert bool(culprit["lines"]) == bool(solution)
    if solution is None:
        assert "TEOD makes the program stop" in culprit["advice"]


def test_weights_alone_name_no_op(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        weight = hand.op("dense/kernel", "weight", function="", kind="weight", file=None, line=0)
        for step in range(4):
            hand.record(weight, (step, run if step > 2 else 0), step)

    found = compare(build, level="weights")
    assert (found.first_step, found.culprits[0]["class"]) == (3, "not known at this level")


def _one(hand: Hand, run: int) -> None:
    hand.record(hand.op("MatMul"), 1)


def _two_steps(hand: Hand, run: int) -> None:
    key = hand.op("MatMul")
    for step in range(1 if run else 4):
        hand.record(key, step, step)


def test_what_a_killed_run_did_not_reach_is_no_difference(make: Callable[..., Path]) -> None:
    found = diff.compare([str(make(_two_steps, 0)), str(make(_two_steps, 1, end=False))])
    assert found.result == "same"
    assert any("killed" in note for note in found.notes)


def test_a_run_that_ended_early_differs_in_structure(make: Callable[..., Path]) -> None:
    assert diff.compare([str(make(_two_steps, 0)), str(make(_two_steps, 1))]).result == "structure"


def test_a_cut_file_is_read_up_to_the_cut(make: Callable[..., Path]) -> None:
    whole = make(_two_steps, 0)
    cut = whole.with_name("cut.tfdt")
    cut.write_bytes(whole.read_bytes()[:-105])
    found = diff.compare([str(whole), str(cut)])
    assert found.result == "same"
    assert any("cut off" in note for note in found.notes)


def test_several_runs(make: Callable[..., Path]) -> None:
    """What differs earliest speaks; the others are counted."""

    def build(hand: Hand, run: int) -> None:
        key = hand.op("MatMul")
        for step in range(3):
            hand.record(key, (step, run if step == run else 0), step)

    found = diff.compare([str(make(build, run)) for run in (0, 2, 1)])
    assert found.first_step == 1
    assert "2 of 2 comparisons differ" in found.notes


HEADERS = {
    "different programs": {"argv": ["eval.py"]},
    "different TensorFlow versions": {"tensorflow": "2.20.0"},
    "different devices": {"devices": ["CPU:0", "GPU:0"]},
    "different levels": {"level": "layers"},
    "different steps": {"steps": [3, 4]},
}


@pytest.mark.parametrize("what", HEADERS)
def test_traces_that_cannot_be_compared(
    make: Callable[..., Path], capsys: pytest.CaptureFixture[str], what: str
) -> None:
    code = diff.main([str(make(_one, 0)), str(make(_one, 1, **HEADERS[what]))])
    _is_refused(code, capsys, what)


FILES = {
    "is not a trace": b"\x80\x04\x95pickle",
    "ends before its header": trace_format.MAGIC,
    "has schema version 99": trace_format.MAGIC + (99).to_bytes(4, "little") + bytes(4),
}


@pytest.mark.parametrize("what", FILES)
def test_files_that_are_no_traces(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    bad = tmp_path / "bad.tfdt"
    bad.write_bytes(FILES[what])
    _is_refused(diff.main([str(make(_one, 0)), str(bad)]), capsys, what)


def test_other_bad_input(make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, empty = str(make(_one, 0)), tmp_path / "empty"
    empty.mkdir()
    _is_refused(diff.main([good, str(tmp_path / "absent")]), capsys, "cannot be read")
    _is_refused(diff.main([good, str(empty)]), capsys, "holds no trace")
    _is_refused(diff.main([good, str(make(lambda hand, run: None, 0))]), capsys, "has no records")
    _is_refused(diff.main([good]), capsys, "one trace cannot be compared")
    with pytest.raises(SystemExit) as ended:
        diff.main([good, good, "--nonsense"])
    _is_refused(int(str(ended.value.code)), capsys, "unrecognized arguments")


def test_records_that_are_counted_wrongly(make: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def build(hand: Hand, run: int) -> None:
        key = hand.op("MatMul")
        hand.record(key, 1)
        hand._seen[key] = 7 if run else 0
        hand.record(key, 2)

    good = str(make(_one, 0))
    _is_refused(diff.main([good, str(make(build, 0))]), capsys, "counts its records wrongly")
    _is_refused(diff.main([good, str(make(build, 1))]), capsys, "counts its records wrongly")


NUMBERS, LETTERS = st.integers(-2, 9), st.text(max_size=3)
PAIRS = st.lists(st.lists(st.one_of(LETTERS, NUMBERS), max_size=3), max_size=2)
ODD = st.one_of(st.none(), NUMBERS, LETTERS, st.lists(NUMBERS, max_size=3), PAIRS)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(field=st.sampled_from(sorted(trace_format.definition(0, "", ""))), value=ODD)
def test_definitions_of_strangers(field: str, value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever stands in a definition: it is compared, or refused; nothing else comes out."""
    paths = []
    for run in range(2):
        hand = Hand(tmp_path_factory.mktemp("t") / "x.tfdt")
        first = hand.op("a")
        odd = dict(trace_format.definition(1, "CropAndResizeGradImage", "b", inputs=[0], forward="a"), **{field: value})
        hand._writer.define([odd])
        for key, digest in ((first, 1), (1, run)):
            hand.record(key, digest)
        paths.append(str(hand.end()))
    try:
        assert diff.text(diff.compare(paths))
    except trace_format.BadTrace as error:
        assert error.advice


def test_a_large_step_and_a_name_that_steers_a_terminal(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        hand.record(hand.op("bad\x1b[2Jname\r\n"), run, 4_000_000_000)

    found = compare(build)
    assert found.first_step == 4_000_000_000
    assert not set(diff.text(found)) & set("\x1b\r")


def test_runs_of_other_numbers_of_processes(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, ranks in (("one", "0"), ("two", "01")):
        (tmp_path / name).mkdir()
        for rank in ranks:
            make(_one, 0).rename(tmp_path / name / f"trace-{rank}.tfdt")
    code = diff.main([str(tmp_path / "one"), str(tmp_path / "two")])
    _is_refused(code, capsys, "do not have the same processes: 1")


def _is_refused(code: int, capsys: pytest.CaptureFixture[str], cause: str) -> None:
    """Exit code 3, one line of cause, one of advice, nothing on standard output."""
    said = capsys.readouterr()
    assert (code, said.out) == (3, "")
    first, advice = said.err.splitlines()
    assert cause in first
    assert advice.startswith("  ")
    assert len(advice) > 8
