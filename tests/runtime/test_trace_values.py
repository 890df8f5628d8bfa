"""Values beside the digests: how much two runs differ, where, towards the loss, and from step to step.

A trace stores a value as a head (JSON) and every stride-th element; its role is "culprit", "path" (to the loss) or
"loss".
The fixture compare(build) writes two traces by build(builder, run) for run 0 and 1, and returns their TraceDiff.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from forks import Forks, traced
from traces import TraceBuilder

from tfdeterminism.trace.align import value_difference
from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.report import text, value_text
from tfdeterminism.trace.schema import tensor_values
from tfdeterminism.trace.schema.reader import Reader

HERE = Path(__file__).resolve().parent
Compare = Callable[..., TraceDiff]


def tensor_sample(array: Any, dtype: str | None = None, **head: Any) -> tensor_values.TensorSample:
    """Return the stored sample of an array, as a trace holds it; head: other fields."""
    array = numpy.asarray(array)
    flat = tensor_values.to_stored(array, dtype or array.dtype.name)
    nan, inf, first = tensor_values.count_nonfinite(flat, dtype or array.dtype.name)
    return tensor_values.TensorSample(
        {"dtype": dtype or array.dtype.name, "shape": list(array.shape), "stride": 1, "nan": nan,
         "elements": array.size, "inf": inf, "first": first, **head}, flat)  # fmt: skip


def bfloat16(array: Any) -> Any:
    """Return the upper halves of float32 values, the bits of bfloat16."""
    return (numpy.asarray(array, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)


@pytest.mark.parametrize("dtype", [numpy.float16, numpy.float32, numpy.float64])
def test_ulps_are_steps_to_the_next_float(dtype: Any) -> None:
    """Compared with NumPy's nextafter, across powers of two and zero."""
    start = numpy.array([1, 2, -2, 0, 1e-4, 3.5], dtype)
    for count in (1, 2, 3, 50):
        other = start.copy()
        for _ in range(count):
            other[3] = numpy.nextafter(other[3], dtype(1))
        measured = value_difference.measure_difference(tensor_sample(start), tensor_sample(other))
        assert (measured["ulps"], measured["differing"], measured["compared"]) == (count, 1, 6)
        assert measured["absolute"] == abs(float(other[3]))
    below = numpy.nextafter(numpy.nextafter(dtype(0), dtype(-1)), dtype(-1))
    above = numpy.nextafter(dtype(0), dtype(1))
    assert value_difference.measure_difference(tensor_sample([below]), tensor_sample([above]))["ulps"] == 3
    assert value_difference.measure_difference(tensor_sample([dtype(-1)]), tensor_sample([dtype(1)]))[
        "ulps"
    ] == 2 * int(dtype(1).view(f"u{dtype().itemsize}"))


def test_ulps_of_bfloat16() -> None:
    array = bfloat16([1.0, -3.0])
    measured = value_difference.measure_difference(
        tensor_sample(array, "bfloat16"), tensor_sample(array + numpy.uint16([2, 1]), "bfloat16")
    )
    assert (measured["ulps"], measured["absolute"], measured["differing"]) == (2, 2**-6, 2)
    assert measured["values_at_index"] == [1.0, 1.0 + 2**-6] or measured["values_at_index"] == [-3.0, -3.0 - 2**-6]


@pytest.mark.parametrize(
    ("first_value", "right", "absolute"),
    [
        (numpy.int64([-(2**63)]), numpy.int64([2**63 - 1]), 2**64 - 1),
        (numpy.uint64([1]), numpy.uint64([2**64 - 1]), 2**64 - 2),
        (numpy.int8([-128, 5]), numpy.int8([127, 5]), 255),
        (numpy.complex64([3 + 4j]), numpy.complex64([0]), 5.0),
        (numpy.bool_([True, False]), numpy.bool_([True, True]), None),
    ],
)
def test_values_that_are_no_floats_have_no_ulps(first_value: Any, right: Any, absolute: object) -> None:
    measured = value_difference.measure_difference(tensor_sample(first_value), tensor_sample(right))
    assert (measured["absolute"], measured["ulps"], measured["differing"]) == (absolute, None, 1)
    json.dumps(measured, allow_nan=False)


def test_nonfinite_values_are_counted_and_not_measured() -> None:
    first_value = numpy.float32([1, numpy.nan, 3, numpy.inf, 5])
    right = numpy.float32([1.5, 2, 3, -numpy.inf, numpy.nan])
    measured = value_difference.measure_difference(tensor_sample(first_value), tensor_sample(right))
    assert (measured["differing"], measured["absolute"], measured["index"], measured["values_at_index"]) == (
        4,
        0.5,
        [0],
        [1.0, 1.5],
    )
    assert measured["nonfinite"] == [{"nan": 1, "inf": 1, "first": 1}, {"nan": 1, "inf": 1, "first": 3}]
    single_nan = value_difference.measure_difference(
        tensor_sample(numpy.float32([numpy.nan])), tensor_sample(numpy.float32([7]))
    )
    assert (single_nan["absolute"], single_nan["ulps"], single_nan["values_at_index"]) == (None, None, ["nan", 7.0])
    json.dumps([measured, single_nan], allow_nan=False)


def test_edge_cases_of_values_are_compared() -> None:
    """Minus zero, the largest numbers, empty arrays, other shapes, two NaN payloads."""
    zero = value_difference.measure_difference(
        tensor_sample(numpy.float32([0.0])), tensor_sample(numpy.float32([-0.0]))
    )
    assert (zero["differing"], zero["absolute"], zero["ulps"]) == (1, 0.0, 0)
    large = value_difference.measure_difference(
        tensor_sample(numpy.float64([1e308])), tensor_sample(numpy.float64([-1e308]))
    )
    assert large["absolute"] == numpy.finfo(float).max
    assert (
        value_difference.measure_difference(tensor_sample(numpy.zeros((0, 3))), tensor_sample(numpy.zeros((0, 3))))[
            "differing"
        ]
        == 0
    )
    assert value_difference.measure_difference(tensor_sample(numpy.zeros(2)), tensor_sample(numpy.zeros(3)))[
        "shapes"
    ] == [[2], [3]]
    payload = numpy.uint32([0x7FC00000, 0x7FC00001]).view(numpy.float32)
    assert value_difference.measure_difference(tensor_sample(payload[:1]), tensor_sample(payload[1:]))["differing"] == 1
    json.dumps([zero, large], allow_nan=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [1] * 38 + [2, 2]},
        {"shape": [2] * 100000},
        {"shape": [-2, -2]},
        {"shape": [True, 4]},
        {"shape": [5]},
        {"stride": 0},
        {"dtype": "object"},
        {"kind": "weight"},
        {"key": None},
        {"role": "\u202e"},
        {"nan": 9},
        {"nan": 1, "first": 4},
        {"first": 0},
        {"step": -1},
        {"order": 1.5},
        {"name": None},
    ],
)
def test_a_forged_value_block_ends_the_trace(changes: dict[str, Any], tmp_path: Path) -> None:
    """A head that no recorder writes ends the trace there, without an exception or a long computation."""
    head = {"kind": "op", "name": "x", "key": 0, "order": 0, "role": "path", "step": 0, "occurrence": 0,
            "dtype": "float32", "shape": [2, 2], "stride": 1, "nan": 0, "inf": 0, "first": None}  # fmt: skip
    array = numpy.zeros(4, numpy.float32)
    assert tensor_values.unpack(tensor_values.pack(head, array)) is not None
    assert tensor_values.unpack(tensor_values.pack({**head, **changes}, array)) is None
    builder = TraceBuilder(tmp_path / "forged.tfdt")
    builder.op("x")
    builder._writer.value(tensor_values.pack({**head, **changes}, array))
    reader = Reader(str(builder.end()))
    assert [kind for kind, _ in reader] == ["definitions"]
    assert "damaged" in str(reader.damage)


def test_a_value_of_an_undefined_op_ends_the_trace(tmp_path: Path) -> None:
    builder = TraceBuilder(tmp_path / "forged.tfdt")
    builder.op("x")
    builder.value(numpy.float32(1), key=1, name="x")
    reader = Reader(str(builder.end()))
    assert [kind for kind, _ in reader] == ["definitions"]


def test_the_path_to_the_loss_leads_through_the_next_step(compare: Compare) -> None:
    """The culprit is in the gradient: it changes a variable that the next step reads."""

    def build(builder: TraceBuilder, run: int) -> None:
        read = builder.op("read", "ReadVariableOp", kind="read", variable="w")
        loss = builder.op("loss", "Mean", (read,), attrs={"loss": True})
        side = builder.op("side", "Square", (read,))
        grad = builder.op("grad", "MeanGrad", (loss,))
        write = builder.op("write", "AssignSubVariableOp", (grad, side), kind="write", variable="w", output=-1)
        for step in range(2):
            for key, bad in ((read, step), (loss, step), (side, step), (grad, True)):
                builder.record(key, run * bad, step)
            builder.write(write, step)

    diff = compare(build)
    assert [(tensor["op"], tensor["role"]) for tensor in diff.path_to_loss] == [
        ("MeanGrad", "culprit"), ("ReadVariableOp", "path"), ("Mean", "loss")]  # fmt: skip


def test_the_path_leads_out_of_a_function(compare: Compare) -> None:
    """A function body's output is the output of the op that calls it."""

    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.op("noise", "RandomUniform", kind="random", function="body")
        call = builder.op("call", "StatefulPartitionedCall", (), kind="call", calls=[["body", 0]])
        loss = builder.op("loss", "Mean", (call,), attrs={"loss": True})
        for key in (noise, call, loss):
            builder.record(key, run)

    assert [tensor["op"] for tensor in compare(build).path_to_loss] == ["RandomUniform", "Mean"]


def write_growing_difference(builder: TraceBuilder, run: int) -> None:
    """Write a trace: the culprit at step 1, a loss and two weights that differ increasingly, NaN in run 1 at step 3."""
    noise = builder.op("noise", "RandomUniform", kind="random")
    for step in range(4):
        bad = run * step
        builder.record(noise, bad, step)
        builder.value(numpy.float32([1, 1 + bad]), step, key=noise, name="noise", role="culprit")
        builder.value(numpy.float32(1 + bad / 8), step)
        for name in ("kernel", "bias"):
            difference = 10 ** (step - 9) * run * bool(step) * (name == "kernel")
            builder.value(numpy.float64([1 + difference, numpy.nan if bad == 3 else 0]), step, kind="weight", name=name)


def test_the_growth_of_the_difference_is_reported(compare: Compare) -> None:
    diff = compare(write_growing_difference).values
    assert diff is not None
    (noise,) = diff["tensors"]
    assert (noise["step"], noise["absolute"], noise["differing"], noise["role"]) == (1, 1.0, 1, "culprit")
    assert [(point["step"], point["absolute"]) for point in diff["growth"]["loss"]] == [(n, n / 8) for n in range(4)]
    weights = diff["growth"]["weights"]
    assert [f"{point['absolute']:.0e}" for point in weights] == ["0e+00", "1e-08", "1e-07", "1e-06"]
    assert (weights[3]["name"], weights[3]["compared"]) == ("kernel", 4)
    assert diff["nonfinite"][0] is None
    first = diff["nonfinite"][1]
    assert (first["what"], first["name"], first["step"], first["index"]) == ("NaN", "kernel", 3, 1)
    json.dumps(diff, allow_nan=False)


def test_values_are_described_in_text(compare: Compare) -> None:
    lines = text.diff_text(compare(write_growing_difference))
    for line in (
        "By how much:",
        "culprit  RandomUniform at step 1: 1 of 2 elements differ, by at most 1 (8,388,608 ulps, relative 0.5)",
        "loss     by step: step 0 0, step 1 0.125, step 2 0.25, step 3 0.375; at most 0.375",
        "run B: the first NaN is in kernel at step 3, index 1: 1 NaN and 0 infinite of 2",
    ):
        assert line in lines


def test_runs_without_values_have_no_values_in_the_report(compare: Compare) -> None:
    diff = compare(lambda builder, run: builder.record(builder.op("noise", "RandomUniform", kind="random"), run))
    assert diff.values is None
    assert value_text.report_lines(diff.values) == []
    assert diff.as_json()["path"][0]["role"] == "culprit"


# {environment: (program, op type of the culprit, minimum number of tensors from the culprit to the loss)}
SEEN = {
    "tf2.21": [("crop_race.py", "CropAndResizeGradImage", 6), ("in_while.py", "PyFunc", 3),
               ("session_loop.py", "RandomUniform", 5), ("many_dtypes.py", "PyFunc", 5)],
    "tf2.0": [("crop_race.py", "CropAndResizeGradImage", 6), ("in_cond.py", "PyFunc", 2),
              ("session_loop.py", "RandomUniform", 5)],
    "tf1.14": [("session_loop.py", "RandomUniform", 5), ("in_while.py", "PyFunc", 2), ("numpy_noise.py", "PyFunc", 3)],
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("environment", SEEN)
def test_values_of_real_runs_are_recorded(forks: Callable[[str], Forks], environment: str, tmp_path: Path) -> None:
    """Values of the culprit's outputs, of what they change, of the loss, and of the weights in each step."""
    for program, op, length in SEEN[environment]:
        folders = [tmp_path / program / name for name in "ABCD"]
        request_file = tmp_path / f"{program}.json"
        for number in range(0, 4, 2):  # first two runs without values, whose difference says which values to record
            options = ["--record-values", str(request_file)] if number else []
            jobs = [traced(out, HERE / "programs" / program, options=options) for out in folders[number : number + 2]]
            for ran in forks(environment).run(jobs):
                assert ran.returncode == 0, ran.stderr
            diff = trace_diff.compare([str(out) for out in folders[number : number + 2]])
            request_file.write_text(json.dumps(diff.as_json()), "utf-8")
        assert diff.values is not None
        tensors = diff.values["tensors"]
        assert (tensors[0]["op"], tensors[0]["role"]) == (op, "culprit"), program
        assert len(tensors) >= length, (program, [tensor["op"] for tensor in tensors])
        assert all(tensor["differing"] and not tensor["shapes"] for tensor in tensors), (program, tensors)
        floats = [tensor for tensor in tensors if tensor["dtype"].startswith(("float", "bfloat"))]
        assert floats and all(tensor["absolute"] > 0 and tensor["ulps"] > 0 for tensor in floats), program
        if "loss" in [tensor["role"] for tensor in tensors]:
            # Of some step: a race's last bits may round away in the mean of another.
            assert any(point["absolute"] > 0 for point in diff.values["growth"]["loss"]), program
            assert diff.values["growth"]["weights"][-1]["ulps"] > 0, program


@pytest.mark.tensorflow
@pytest.mark.parametrize("environment", SEEN)
def test_recording_values_changes_no_result(forks: Callable[[str], Forks], environment: str, tmp_path: Path) -> None:
    """A clean program that stores every requested tensor ends with the weights of an untraced run."""
    program = HERE / "programs" / ("clean_session.py" if environment == "tf1.14" else "clean_cnn.py")
    plain, with_values = tmp_path / "plain", tmp_path / "kept"
    (ran,) = forks(environment).run([traced(plain, program, options=["--level", "none"])])
    assert ran.returncode == 0, ran.stderr
    (ran,) = forks(environment).run([traced(with_values, program, options=["--record-values", "[]"])])
    assert ran.returncode == 0, ran.stderr
    end_blocks = [
        next(block for kind, block in Reader(str(folder / "trace-0.tfdt")) if kind == "end")
        for folder in (plain, with_values)
    ]
    assert end_blocks[0]["weights"] == end_blocks[1]["weights"] is not None
    heads = [block.head for kind, block in Reader(str(with_values / "trace-0.tfdt")) if kind == "value"]
    assert {tensor["kind"] for tensor in heads} == {"loss", "weight"}
    assert max(head["step"] for head in heads if head["kind"] == "weight") == end_blocks[1]["steps"] - 1
