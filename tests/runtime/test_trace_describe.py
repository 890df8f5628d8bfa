"""`trace diff` on handwritten traces: how a cause is described: its op, its line, its class, its solution.

A TraceBuilder writes one trace: op() and eager() define ops; FILE:LINE#N is the N-th op of a line. The fixture
compare(build) compares the traces that build(builder, run) writes for run 0 and 1.
Solutions: TEOD enables TensorFlow's op determinism, ED is tfdeterminism.enable_determinism(), TDO sets
TF_DETERMINISTIC_OPS, ONEWORKER is one worker in the input pipeline.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traces import TraceBuilder

from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.report import text


def test_an_argument_from_python_is_shown_where_the_call_is(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        argument = builder.op("x", "Placeholder", kind="argument", file=None, line=0)
        call = builder.eager("train.py:9#0", "PartitionedCall", (), kind="call", calls=[["train_step", 0]], line=9)
        for key in (argument, call):
            builder.record(key, (key, run))

    (culprit,) = compare(build).culprits
    assert (culprit["class"], culprit["file"], culprit["line"]) == ("Python feed", "train.py", 9)


def test_a_gradient_names_its_forward_op_and_line(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        crops = builder.op("CropAndResize", "CropAndResize", line=30)
        gradient = builder.op(
            "grad", "CropAndResizeGradImage", (crops,), forward="CropAndResize", function="backward", line=40
        )
        builder.record(crops, 1)
        builder.record(gradient, run)

    (culprit,) = compare(build).culprits
    assert (culprit["op_type"], culprit["forward_op"], culprit["line"]) == (
        "CropAndResizeGradImage", "CropAndResize", 30)  # fmt: skip
    assert culprit["source"] == "crop-and-resize-backprop"


def test_the_forward_op_of_an_eager_gradient(compare: Callable[..., TraceDiff]) -> None:
    """It is found by the gradient's type name and a common input, since no graph names it."""

    def build(builder: TraceBuilder, run: int) -> None:
        boxes = builder.eager("train.py:2#0", "Python", kind="feed", line=2)
        other = builder.eager("train.py:3#0", "CropAndResize", line=3)
        crops = builder.eager("train.py:4#0", "CropAndResize", (boxes,), line=4)
        gradient = builder.eager("train.py:9#0", "CropAndResizeGradImage", (boxes,), line=9)
        for key in (boxes, other, crops):
            builder.record(key, key)
        builder.record(gradient, run)

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
def test_the_name_of_a_gradient_names_its_forward_op(
    compare: Callable[..., TraceDiff], gradient: str, forward: str | None
) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        data = builder.eager("train.py:2#0", "Python", kind="feed")
        builder.eager("train.py:3#0", forward or "Add", (data,))
        builder.record(data, 1)
        builder.record(builder.eager("train.py:4#0", gradient, (data,)), run)

    assert compare(build).culprits[0]["forward_op"] == forward


def test_a_pipeline_is_reported_at_the_line_of_its_map(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        mapped = builder.eager("train.py:4#0", "ParallelMapDatasetV2", recorded=False, line=4)
        iterator = builder.eager("train.py:6#0", "MakeIterator", (mapped,), recorded=False, line=6)
        batch = builder.eager("train.py:7#0", "IteratorGetNext", (iterator,), kind="input", line=7)
        builder.record(batch, run)

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
    compare: Callable[..., TraceDiff], version: str, device: str, solution: str | None
) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("grad", "CropAndResizeGradImage", device=f"/device:{device}:0"), run)

    (culprit,) = compare(build, version=version).culprits
    assert culprit["solution"] == solution
    assert bool(culprit["lines"]) == bool(solution)
    if solution is None:
        assert "TEOD makes the program stop" in culprit["advice"]


def test_weights_alone_name_no_op(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        weight = builder.op("dense/kernel", "weight", function="", kind="weight", file=None, line=0)
        for step in range(4):
            builder.record(weight, (step, run if step > 2 else 0), step)

    diff = compare(build, level="weights")
    assert (diff.first_step, diff.culprits[0]["class"]) == (3, "not known at this level")


def test_the_input_of_a_pipeline_is_the_only_cause(compare: Callable[..., TraceDiff]) -> None:
    """An array is the input of a dataset, whose iterator reads it."""

    def build(builder: TraceBuilder, run: int) -> None:
        array = builder.eager("train.py:3#0", "Python", kind="feed")
        dataset = builder.eager("train.py:3#0", "TensorSliceDataset", (array,), recorded=False)
        iterator = builder.eager("train.py:4#0", "AnonymousIteratorV3", (dataset,), recorded=False)
        following = builder.eager("train.py:4#0", "IteratorGetNext", (iterator,), kind="input")
        builder.record(array, run)
        builder.record(following, run)

    assert [culprit["op_type"] for culprit in compare(build).culprits] == ["Python"]


def test_advice_for_a_clock_is_not_to_seed_it(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("Timestamp", "Timestamp", kind="stateful"), run)

    (culprit,) = compare(build).culprits
    assert not any("set_seed" in line for line in culprit["lines"])
    assert "clock" in culprit["lines"][0]


def test_see_below_is_printed_only_with_advice_below(compare: Callable[..., TraceDiff]) -> None:
    """A layer differs, but none of its ops is known, so there is no advice."""

    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("dense", "layer", kind="layer"), run)

    diff = compare(build)
    assert diff.culprits[0]["lines"] == []
    assert "see below" not in text.diff_text(diff)


def test_a_value_that_leads_nowhere_is_no_cause_beside_one_that_does(
    compare: Callable[..., TraceDiff],
) -> None:
    """The clock is compared with a large number; noise enters a weight two steps later."""

    def build(builder: TraceBuilder, run: int) -> None:
        clock = builder.op("Timestamp", "Timestamp", kind="stateful")
        late = builder.op("Greater", "Greater", (clock,))
        noise = builder.op("PyFunc", "PyFunc", kind="feed")
        total = builder.op("AddV2", "AddV2", (late, noise))
        for step in range(4):
            builder.record(clock, (run, step), step)
            builder.record(late, 0, step)
            builder.record(noise, run if step == 2 else 0, step)
            builder.record(total, run if step == 2 else 0, step)

    assert [(culprit["op_type"], culprit["step"]) for culprit in compare(build).culprits] == [("PyFunc", 2)]


def test_a_value_that_is_kept_for_a_later_step_is_the_cause(compare: Callable[..., TraceDiff]) -> None:
    """Noise of the first step is not used before the third."""

    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.eager("train.py:3#0", "RandomUniform", kind="random")
        still = builder.eager("train.py:4#0", "Fill")
        total = builder.eager("train.py:9#0", "MatMul", (noise, still))
        builder.record(noise, run)
        builder.record(still, 0)
        for step in range(4):
            builder.record(total, (step, run if step > 1 else 0), step)

    assert [culprit["op_type"] for culprit in compare(build).culprits] == ["RandomUniform"]


def test_state_that_differed_before_recording_is_no_culprit(compare: Callable[..., TraceDiff]) -> None:
    """For a variable or tensor of an earlier step, the advice is to record from an earlier step."""

    def build(builder: TraceBuilder, run: int) -> None:
        read = builder.op("Read", "ReadVariableOp", kind="read", variable="w")
        tensor = builder.eager("train.py:9#0", "MatMul", attrs={"preexisting": True})
        for key in (read, tensor):
            builder.record(key, run, 4)

    diff = compare(build)
    assert (diff.result, diff.culprits) == ("diverged", [])
    assert any("record from an earlier step" in note for note in diff.notes)


@pytest.mark.parametrize("later", [False, True])
def test_state_without_differing_consumers_is_no_culprit(compare: Callable[..., TraceDiff], later: bool) -> None:
    """Its consumers agree in the first step and differ later because of it."""

    def build(builder: TraceBuilder, run: int) -> None:
        tensor = builder.eager("train.py:9#0", "RandomUniform", kind="op", attrs={"preexisting": True})
        total = builder.eager("train.py:11#0", "MatMul", (tensor,))
        builder.record(tensor, run, 1)
        for step in (1, 2):
            builder.record(total, run if later and step == 2 else 0, step)

    diff = compare(build)
    assert (diff.result, diff.culprits) == ("diverged", [])
    assert any("record from an earlier step" in note for note in diff.notes)


def test_unordered_accesses_are_listed_beside_the_cause(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(
            builder.op("draw", "RandomUniform", kind="random", attrs={"unordered": "in any order"}, line=7), 1
        )
        builder.record(builder.op("noise", "PyFunc", kind="feed"), run)

    diff = compare(build)
    assert [culprit["op_type"] for culprit in diff.culprits] == ["PyFunc"]
    assert "left open: RandomUniform (train.py:7): in any order" in text.diff_text(diff)


def test_a_reference_that_is_written_while_it_is_read(compare: Callable[..., TraceDiff]) -> None:
    """The product reads the variable's memory while another update writes it."""

    def build(builder: TraceBuilder, run: int) -> None:
        read = builder.op("w/read", "Identity", kind="read", variable="w")
        product = builder.op("Mul", "Mul", (read,))
        write = builder.op("AssignAdd", "AssignAdd", kind="write", variable="w", attrs={"unordered": "in any order"})
        builder.record(read, 1)
        builder.record(product, run)
        builder.write(write)

    (culprit,) = compare(build).culprits
    assert (culprit["op_type"], culprit["class"]) == ("Mul", "unordered access")


def test_replicas_of_one_line_are_one_cause(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        for replica in range(2):
            builder.record(builder.op(f"replica_{replica}/PyFunc", "PyFunc", kind="feed", line=7, replica=replica), run)

    assert len(compare(build).culprits) == 1
