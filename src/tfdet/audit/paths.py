"""Which instructions lie on the way from one instruction to another, by basic blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Blocks(NamedTuple):
    """A function's basic blocks, in order."""

    starts: Sequence[int]  # first instruction of each
    ends: Sequence[int]  # behind its last
    before: Sequence[Sequence[int]]  # the blocks that lead to it

    def holding(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1


def after(blocks: Blocks, first: int) -> set[int]:
    """The instructions that may run after `first`."""
    here = blocks.holding(first)
    return _reached(blocks, _turned(blocks.before), here, range(first + 1, blocks.ends[here]))


def between(blocks: Blocks, first: int, lasts: Iterable[int]) -> set[int]:
    """The instructions that may run after `first` and before one of `lasts`, neither counted by itself."""
    behind = after(blocks, first)
    found: set[int] = set()
    for last in lasts:
        block = blocks.holding(last)
        found |= behind & _reached(blocks, blocks.before, block, range(blocks.starts[block], last))
    return found


def deciding(blocks: Blocks, at: int) -> set[int]:
    """The last instructions of the blocks whose branch decides whether the block of `at` runs next."""
    following = _turned(blocks.before)
    found: set[int] = set()
    seen: set[int] = set()
    pending = [blocks.holding(at)]
    while pending:
        for block in blocks.before[pending.pop()]:
            if len(following[block]) > 1:
                found.add(blocks.ends[block] - 1)
            elif block not in seen:
                seen.add(block)
                pending.append(block)
    return found


def _turned(before: Sequence[Sequence[int]]) -> list[list[int]]:
    following: list[list[int]] = [[] for _ in before]
    for block, sources in enumerate(before):
        for source in sources:
            following[source].append(block)
    return following


def _reached(blocks: Blocks, edges: Sequence[Sequence[int]], block: int, part: range) -> set[int]:
    """That part of the block, and all of the blocks that edges lead to from it."""
    found = set(part)
    pending = [*edges[block]]
    seen: set[int] = set()
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            found.update(range(blocks.starts[block], blocks.ends[block]))
            pending += edges[block]
    return found
