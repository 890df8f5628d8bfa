"""Reading the order of sums from Horovod's timeline, in the format of version 0.28.1 without some times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tfdeterminism.trace.search.summed_tensors import first_difference, summed_together

NAMES = {1: "a", 2: "b", 3: "c"}


def timeline(sums: Sequence[Sequence[int]], library: str = "GLOO") -> str:
    """Return the text of a timeline in which Horovod sums these groups of tensors."""
    events = ['{"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros":1}}']
    for pid, name in NAMES.items():
        events.append(f'{{"name": "process_name", "ph": "M", "pid": {pid}, "args": {{"name": "{name}"}}}}')
        events.append(f'{{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": {pid}}}')
    for together in sums:
        for activity in ("ALLREDUCE", *["MEMCPY_IN_FUSION_BUFFER"] * (len(together) > 1), f"{library}_ALLREDUCE"):
            events += [f'{{"ph": "B", "name": "{activity}", "ts": 2, "pid": {pid}}}' for pid in together]
            events += [f'{{"ph": "E", "ts": 3, "pid": {pid}}}' for pid in together if activity != "ALLREDUCE"]
    return "[\n" + ",\n".join(events) + "]"


@pytest.mark.parametrize("library", ["GLOO", "NCCL", "MPI"])
def test_tensors_of_one_sum_are_named_in_their_order(library: str) -> None:
    assert summed_together(timeline([[1, 3], [2]], library)) == [["a", "c"], ["b"]]
    assert summed_together(timeline([[1], [3], [2]], library)) == [["a"], ["c"], ["b"]]


def test_a_truncated_timeline_is_read_up_to_the_cut() -> None:
    text = timeline([[1, 3], [2]])
    for end in range(len(text)):
        sums = summed_together(text[:end])
        assert sums in ([], [["a"]], [["a", "c"]], [["a", "c"], ["b"]])
    assert sums


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([["a", "b"], ["c"]], None),
        ([["a", "b"]], None),
        ([["a"], ["b", "c"]], "sum 1 is of a, b in one run, of a in another"),
        ([["b", "a"], ["c"]], "sum 1 is of a, b in one run, of b, a in another"),
        ([["a", "b"], ["c", "d", "e"]], "sum 2 is of c in one run, of 3 tensors (c to e) in another"),
    ],
)
def test_the_first_sum_that_differs_is_reported(other: list[list[str]], expected: str | None) -> None:
    assert first_difference([["a", "b"], ["c"]], other) == expected
