"""Loops with more iterations in one step than in another: the records of two runs' traces are aligned by step.

A TraceBuilder writes one trace; in eager(), FILE:LINE#N is the N-th op of a line. The fixture compare(build) compares
the traces that build(builder, run) writes for run 0 and 1: their result is "structure" if the runs execute other ops.
The fixture make(build, run) writes one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff


def write_loop(
    builder: TraceBuilder, iterations: Sequence[int], drawn_values: Sequence[object] = (), **fields: str
) -> None:
    """Write steps that draw a number, iterate, and sum.

    iterations: the count in each step; drawn_values: default: always 0.
    """
    drawn = builder.eager("train.py:2#0", "RandomUniform", kind="random", line=2, **fields)
    start = builder.eager("train.py:3#0", "Const", line=3, **fields)
    tanhs = [start]
    for number in range(max(iterations)):
        tanhs.append(builder.eager(f"train.py:5#{number}", "Tanh", (tanhs[-1],), line=5, **fields))
    total = builder.eager("train.py:7#0", "Sum", tuple(tanhs[1:]), line=7, **fields)
    for step, count in enumerate(iterations):
        builder.record(drawn, drawn_values[step] if drawn_values else 0, step)
        builder.record(start, step, step)
        for number in range(count):
            builder.record(tanhs[number + 1], (step, number), step)
        builder.record(total, (step, count), step)


@pytest.mark.parametrize("iterations", [([2, 3, 2], [3, 2, 2]), ([1, 4, 2], [2, 1, 4]), ([3, 1], [2, 3])])
def test_other_iteration_counts_are_structure(
    compare: Callable[..., TraceDiff], iterations: tuple[list[int], ...]
) -> None:
    diff = compare(lambda builder, run: write_loop(builder, iterations[run]))
    assert [(culprit["op_type"], culprit["class"], culprit["line"], culprit["step"]) for culprit in diff.culprits] == [
        ("Tanh", "structure", 5, 0)]  # fmt: skip
    assert (diff.result, diff.first_step) == ("structure", 0)


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [(([2, 4, 3], [2, 3, 4]), ("A", 1, 0)), (([4, 2, 3, 4], [4, 2, 4, 3]), ("B", 2, 1))],
)
def test_the_iteration_that_only_one_run_has_is_named(
    compare: Callable[..., TraceDiff], iterations: tuple[list[int], ...], expected: tuple[str, int, int]
) -> None:
    (culprit,) = compare(lambda builder, run: write_loop(builder, iterations[run])).culprits
    assert culprit["op_name"] == "Tanh@train.py:5#3"
    assert (culprit["run"], culprit["step"], culprit["occurrence"]) == expected


def test_equal_iteration_counts_are_the_same(compare: Callable[..., TraceDiff]) -> None:
    assert compare(lambda builder, run: write_loop(builder, [3, 1, 4, 1, 5])).result == "same"


def test_the_value_that_decides_the_iteration_count_is_the_cause(compare: Callable[..., TraceDiff]) -> None:
    iterations = [3, 2, 4], [3, 4, 2]
    diff = compare(lambda builder, run: write_loop(builder, iterations[run], drawn_values=iterations[run]))
    (culprit,) = diff.culprits
    assert (culprit["op_type"], culprit["class"], culprit["step"]) == ("RandomUniform", "seed or state", 1)


def test_equal_records_in_other_steps_are_the_same(compare: Callable[..., TraceDiff]) -> None:
    """Another thread ends the steps, at random times."""

    def build(builder: TraceBuilder, run: int) -> None:
        op = builder.eager("train.py:4#0", "Sum", line=4)
        for number, step in enumerate(([0, 0, 1, 2], [0, 1, 1, 1])[run]):
            builder.record(op, number, step)
        last = builder.eager("train.py:9#0", "Sum", line=9)
        builder.record(last, 1, 2)

    assert compare(build).result == "same"


def test_steps_of_a_threads_ops_do_not_matter(compare: Callable[..., TraceDiff]) -> None:
    """The step of a thread's op is random; only the number of its occurrences counts."""

    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.eager("train.py:4#0", "PyFunc", kind="feed", line=4, thread="worker-0")
        work = builder.eager("train.py:5#0", "Sum", (noise,), line=5, thread="worker-0")
        for number, step in enumerate(([0, 0, 1, 2], [0, 1, 1, 1])[run]):
            builder.record(noise, (number, run if number > 1 else 0), step)
            builder.record(work, (number, run if number > 1 else 0), step)
        last = builder.eager("train.py:9#0", "Sum", line=9)
        builder.record(last, 1, 2)

    diff = compare(build)
    assert [(culprit["op_type"], culprit["class"]) for culprit in diff.culprits] == [("PyFunc", "Python feed")]


def test_ops_that_feed_a_queue_have_no_step(compare: Callable[..., TraceDiff]) -> None:
    """An op that fills a prefetch queue runs at random times, so its step says nothing."""

    def build(builder: TraceBuilder, run: int) -> None:
        row = builder.op("row", "Square", function="session", attrs={"prefetch": True})
        for number, step in enumerate(([0, 0, 1, 2, 2], [0, 1, 1, 1])[run]):
            builder.record(row, number, step)
        last = builder.op("Sum", "Sum", function="session")
        builder.record(last, 1, 2)

    assert compare(build).result == "same"


@settings(max_examples=40, deadline=None, derandomize=True)
@given(iterations=st.lists(st.lists(st.integers(1, 5), min_size=4, max_size=4), min_size=2, max_size=2))
def test_the_first_step_with_another_iteration_count_is_named(
    iterations: list[list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first step with another number of iterations is named, and nothing else."""
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path_factory.mktemp("t") / "x.tfdt")
        write_loop(builder, iterations[run])
        paths.append(str(builder.end(steps=4)))
    diff = trace_diff.compare(paths)
    unlike = [step for step in range(4) if iterations[0][step] != iterations[1][step]]
    assert diff.result == ("structure" if unlike else "same")
    assert [(culprit["op_type"], culprit["step"]) for culprit in diff.culprits] == [
        ("Tanh", step) for step in unlike[:1]
    ]
    assert diff.first_step == (unlike[0] if unlike else None)
    assert diff.missing == sum(abs(one - other) for one, other in zip(*iterations, strict=True))


def test_steps_of_an_untrusted_trace_may_be_any_numbers(make: Callable[..., Path]) -> None:
    """Steps of an untrusted file are arbitrary numbers."""
    steps = [2, 0, 1, 0], [0, 2, 0, 7]

    def build(builder: TraceBuilder, run: int) -> None:
        op = builder.eager("train.py:4#0", "Sum", line=4)
        for number, step in enumerate(steps[run]):
            builder.record(op, (run, number), step)

    assert trace_diff.compare([str(make(build, run)) for run in (0, 1)]).result in ("structure", "diverged")


def write_several_loops_in_a_step(builder: TraceBuilder, iterations: Sequence[int], noise: object = None) -> None:
    """Write several loops into one step, as the step's program has an outer loop; op numbers of a line count on.

    iterations: the count of each loop.
    """
    passes, counted, line = (
        len(iterations),
        0,
        [builder.eager(f"train.py:5#{n}", "Tanh", line=5) for n in range(sum(iterations))],
    )
    sums = [builder.eager(f"train.py:7#{n}", "Sum", tuple(line), line=7) for n in range(passes)]
    drawn = builder.eager("train.py:1#0", "RandomUniform", kind="random", line=1)
    builder.record(drawn, noise)
    for number, count in enumerate(iterations):
        for iteration in range(count):
            builder.record(line[counted], (number, iteration))
            counted += 1
        builder.record(sums[number], (number, count))


@pytest.mark.parametrize("iterations", [([2, 4], [4, 4]), ([2, 3], [3, 2]), ([3, 1, 1], [3, 2, 4]), ([3, 2], [3])])
def test_other_iteration_counts_within_a_step_are_structure(
    compare: Callable[..., TraceDiff], iterations: tuple[list[int], ...]
) -> None:
    diff = compare(lambda builder, run: write_several_loops_in_a_step(builder, iterations[run]))
    assert [(culprit["op_type"], culprit["class"], culprit["line"]) for culprit in diff.culprits] == [
        ("Tanh", "structure", 5)
    ]
    assert diff.culprits[0]["why"].endswith(("the other does not", "the other goes on without"))


def test_noise_before_another_iteration_count_is_its_cause(compare: Callable[..., TraceDiff]) -> None:
    diff = compare(lambda builder, run: write_several_loops_in_a_step(builder, ([2, 4], [4, 4])[run], noise=run))
    assert [culprit["op_type"] for culprit in diff.culprits] == ["RandomUniform"]


@pytest.mark.parametrize("matters", [False, True])
def test_another_order_of_lines_counts_only_if_a_value_differs(
    compare: Callable[..., TraceDiff], matters: bool
) -> None:
    """Python iterates over a set; lines run in another order, and a difference follows."""

    def build(builder: TraceBuilder, run: int) -> None:
        ops = [
            builder.eager(f"train.py:{line}#0", op, line=line) for line, op in ((3, "Square"), (4, "Tanh"), (5, "Exp"))
        ]
        drawn = builder.eager("train.py:9#0", "RandomUniform", kind="random", line=9)
        for position in ([0, 1, 2], [2, 0, 1])[run]:
            builder.record(ops[position], (position, run if matters and position else 0))
        builder.record(drawn, run)

    diff = compare(build)
    expected = [("Exp", "structure")] if matters else [("RandomUniform", "seed or state")]
    assert [(culprit["op_type"], culprit["class"]) for culprit in diff.culprits] == expected


def test_noise_that_a_host_read_compares_is_the_cause(compare: Callable[..., TraceDiff]) -> None:
    """Python reads noise and compares it with a number: no effect in step 0, one more iteration in step 1."""

    def build(builder: TraceBuilder, run: int) -> None:
        noise = builder.eager("train.py:2#0", "rand", kind="random", line=2, dtype="float32")
        host_reads = [builder.eager(f"train.py:3#{n}", "is_nonzero", (noise,), line=3) for n in range(3)]
        tanhs = [builder.eager(f"train.py:4#{n}", "Tanh", tuple(host_reads), line=4, dtype="float32") for n in range(2)]
        for step, count in enumerate(([1, 1], [1, 2])[run]):
            builder.record(noise, (run, step), step)
            for iteration in range(count):
                builder.record(host_reads[iteration], True, step)
                builder.record(tanhs[iteration], iteration, step)
            builder.record(host_reads[count], False, step)

    assert [culprit["op_type"] for culprit in compare(build).culprits] == ["rand"]
