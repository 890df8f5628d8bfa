"""`trace diff` on traces written by hand: what looks like a cause, and leads nowhere or comes of another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from traces import Hand

from tfdeterminism.trace.analyse import diff


def test_a_value_that_chooses_the_branch_is_the_cause(compare: Callable[..., diff.Difference]) -> None:
    """What a call gets is recorded when it has ended, behind all that it has done."""

    def build(hand: Hand, run: int) -> None:
        chosen = hand.eager("train.py:3#0", "Python", kind="feed", line=3)
        hand.eager("train.py:4#0", "PartitionedCall", (chosen,), kind="call", calls=[["train", 0]], recorded=False)
        argument = hand.op("odd", "Placeholder", kind="argument", function="train", recorded=False)
        hand.op("cond", "If", (argument,), kind="call", calls=[["yes", 0], ["no", 0]], function="train", recorded=False)
        branches = [hand.op(name, "Tanh", function=name, line=9) for name in ("yes", "no")]
        hand.record(branches[run], 1)
        hand.record(chosen, run)

    found = compare(build)
    assert [(one["op_type"], one["class"], one["line"]) for one in found.culprits] == [("Python", "Python feed", 3)]


def test_a_branch_that_nothing_chose_is_a_structure(compare: Callable[..., diff.Difference]) -> None:
    def build(hand: Hand, run: int) -> None:
        other = hand.eager("train.py:3#0", "Python", kind="feed", line=3)
        used = hand.eager("train.py:5#0", "Sum", (other,), line=5)
        branches = [hand.op(name, "Tanh", function=name, line=9) for name in ("yes", "no")]
        hand.record(branches[run], 1)
        hand.record(other, run)
        hand.record(used, run)

    assert [one["class"] for one in compare(build).culprits][:1] == ["structure"]


@pytest.mark.parametrize("restored", [True, False])
def test_what_is_overwritten_before_it_is_read_is_no_cause(
    compare: Callable[..., diff.Difference], restored: bool
) -> None:
    """Weights that begin by chance, and then come from a checkpoint."""

    def build(hand: Hand, run: int) -> None:
        draws = [hand.eager(f"train.py:{line}#0", "RandomUniform", kind="random", line=line) for line in (2, 3)]
        writes = [
            hand.eager(f"train.py:{line}#0", "AssignVariableOp", (draw,), kind="write", variable=name, output=-1)
            for line, draw, name in zip((2, 3), draws, ("body", "head"), strict=True)
        ]
        reads = [
            hand.eager(f"train.py:{line}#0", "ReadVariableOp", kind="read", variable=name, line=line)
            for line, name in ((7, "body"), (8, "head"))
        ]
        for draw, write in zip(draws, writes, strict=True):
            hand.record(draw, (draw, run))
            hand.write(write)
        hand.record(reads[0], 0 if restored else run)
        hand.record(reads[1], run)
        hand.record(reads[0], run, 1)  # trained by what the head gives

    assert [one["line"] for one in compare(build).culprits] == ([3] if restored else [2, 3])
