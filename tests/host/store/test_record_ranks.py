"""The field `ranks` of a record is read, and rejected where it contradicts other fields."""

from __future__ import annotations

from typing import Any

import pytest
from records import make_record

from tfdet.store.fast_records import read_line
from tfdet.store.records import parse
from tfdet_common import journal

# Ten runs, all of which differed.  differed: the runs that differed, by rank; outputs: {index of an output: the runs in
# which it differed in any rank}; agreed: the runs in which all ranks had the same bytes.
RANKS: dict[str, Any] = {
    "number": 2, "launcher": "horovodrun", "transport": "gloo", "library": "horovod 0.28.1", "variables": {},
    "differed": [10, 4], "outputs": {"0": 10, "7": 1}, "agreed": 10,
}  # fmt: skip


def line(**changes: Any) -> bytes:
    return journal.dump(make_record("differs", ranks={**RANKS, **changes})).encode("ascii") + b"\n"


def test_a_record_of_several_ranks_is_read_as_it_was_written() -> None:
    record = parse(line())
    assert record.ranks is not None
    assert (record.ranks.number, record.ranks.differed, record.ranks.outputs) == (2, [10, 4], {"0": 10, "7": 1})
    assert read_line(line()).runs == record.runs


@pytest.mark.parametrize(
    "changes",
    [
        {"differed": [10]},  # one number for two ranks
        {"differed": [3, 4]},  # fewer than the ten runs that differed
        {"differed": [11, 0]},  # more than the runs
        {"outputs": {"0": 11}},
        {"outputs": {"first": 1}},  # no index
        {"agreed": 11},
        {"number": 1, "differed": [10]},
        {"more": 1},  # an unknown field
    ],
)
def test_ranks_that_no_run_can_produce_are_refused(changes: dict[str, Any]) -> None:
    for read in (parse, read_line):
        with pytest.raises(ValueError, match=r"rank|output|differ|agreed|more"):
            read(line(**changes))
