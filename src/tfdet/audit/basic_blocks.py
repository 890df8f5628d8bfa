"""Reachability between instructions of a function, by its basic blocks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class ControlFlowGraph(NamedTuple):
    """A function's basic blocks, in order, with their edges."""

    starts: Sequence[int]  # the number of each block's first instruction
    ends: Sequence[int]  # one past each block's last instruction
    predecessors: Sequence[Sequence[int]]  # the numbers of each block's predecessors

    def block_of(self, at: int) -> int:
        """Return the number of the block that contains instruction `at`."""
        return bisect_right(self.starts, at) - 1


def reachable_from(blocks: ControlFlowGraph, first: int) -> set[int]:
    """Return the instructions that may execute after `first`."""
    block = blocks.block_of(first)
    return _reachable(blocks, _reverse_edges(blocks.predecessors), block, range(first + 1, blocks.ends[block]))


def reachable_between(blocks: ControlFlowGraph, first: int, lasts: Iterable[int]) -> set[int]:
    """Return the instructions that may execute after `first` and before one of `lasts`, both excluded."""
    following = reachable_from(blocks, first)
    instructions: set[int] = set()
    for last in lasts:
        block = blocks.block_of(last)
        instructions |= following & _reachable(blocks, blocks.predecessors, block, range(blocks.starts[block], last))
    return instructions


def controlling_branches(blocks: ControlFlowGraph, at: int) -> set[int]:
    """Return the nearest branches that decide whether the block of instruction `at` executes.

    Each is given by its instruction number; it is the last instruction of its block.
    """
    successors = _reverse_edges(blocks.predecessors)
    branches: set[int] = set()
    visited: set[int] = set()
    pending = [blocks.block_of(at)]
    while pending:
        for block in blocks.predecessors[pending.pop()]:
            if len(successors[block]) > 1:
                branches.add(blocks.ends[block] - 1)
            elif block not in visited:
                visited.add(block)
                pending.append(block)
    return branches


def _reverse_edges(predecessors: Sequence[Sequence[int]]) -> list[list[int]]:
    successors: list[list[int]] = [[] for _ in predecessors]
    for block, sources in enumerate(predecessors):
        for source in sources:
            successors[source].append(block)
    return successors


def _reachable(blocks: ControlFlowGraph, edges: Sequence[Sequence[int]], block: int, start: range) -> set[int]:
    """Return the instructions `start` of `block`, and all those of the blocks reachable from it along `edges`."""
    instructions = set(start)
    pending = [*edges[block]]
    visited: set[int] = set()
    while pending:
        block = pending.pop()
        if block not in visited:
            visited.add(block)
            instructions.update(range(blocks.starts[block], blocks.ends[block]))
            pending += edges[block]
    return instructions
