"""`trace diff` on traces written by hand: how a cause is named, its place, its class, its solution."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traces import Hand

from tfdeterminism.trace.analyse import diff


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
