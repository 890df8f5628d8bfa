"""Reachability between instructions of a function, by its basic blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class ControlFlowGraph(NamedTuple):
    """A function's basic blocks, in order, with their edges."""

    starts: Sequence[int]  # first instruction of each
    ends: Sequence[int]  # one past its last instruction
    predecessors: Sequence[Sequence[int]]  # of each block

    def block_of(self, at: int) -> int:
        return bisect_right(self.starts, at) - 1


def reachable_from(blocks: ControlFlowGraph, first: int) -> set[int]:
    """Return the instructions that may execute after `first`."""
    here = blocks.block_of(first)
    return _reachable(blocks, _reverse_edges(blocks.predecessors), here, range(first + 1, blocks.ends[here]))


def reachable_between(blocks: ControlFlowGraph, first: int, lasts: Iterable[int]) -> set[int]:
    """Return the instructions that may execute after `first` and before one of `lasts`, both excluded."""
    behind = reachable_from(blocks, first)
    found: set[int] = set()
    for last in lasts:
        block = blocks.block_of(last)
        found |= behind & _reachable(blocks, blocks.predecessors, block, range(blocks.starts[block], last))
    return found


def controlling_branches(blocks: ControlFlowGraph, at: int) -> set[int]:
    """Return the branches (last instructions of their blocks) that decide whether the block of `at` executes next."""
    following = _reverse_edges(blocks.predecessors)
    found: set[int] = set()
    seen: set[int] = set()
    pending = [blocks.block_of(at)]
    while pending:
        for block in blocks.predecessors[pending.pop()]:
            if len(following[block]) > 1:
                found.add(blocks.ends[block] - 1)
            elif block not in seen:
                seen.add(block)
                pending.append(block)
    return found


def _reverse_edges(before: Sequence[Sequence[int]]) -> list[list[int]]:
    following: list[list[int]] = [[] for _ in before]
    for block, sources in enumerate(before):
        for source in sources:
            following[source].append(block)
    return following


def _reachable(blocks: ControlFlowGraph, edges: Sequence[Sequence[int]], block: int, part: range) -> set[int]:
    """Return `part` of the block and all instructions of the blocks reachable from it along `edges`."""
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
