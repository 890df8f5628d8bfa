"""Control flow of SASS, the machine code, of Volta and later GPUs: inlines called functions and finds basic blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfdet.audit import sass

PT = 7  # the predicate that is always true
# Opcodes: the 9 bits of sass.OPCODE.
CALLS = frozenset({0x143, 0x144})  # CALL.ABS, CALL.REL
_RELATIVE_CALL = 0x144
_BRANCH, _RETURN = 0x147, 0x150  # BRA, RET
# If unguarded, these never continue with the next instruction: EXIT, KILL, RET, and the jumps that are not followed:
# BRX, JMP, JMX, BRXU, JMXU.
_TERMINATORS = frozenset({0x14D, 0x15B, _RETURN, 0x149, 0x14A, 0x14C, 0x158, 0x159})
_MAX_INLINED = 20_000  # instructions of all inlined functions


@dataclass
class SassCode:
    """One function's code, followed by a copy of each function that it calls; calls branch to the copies."""

    code: memoryview  # or bytes
    arch: int

    def __post_init__(self) -> None:
        halves = np.frombuffer(self.code, "<u8").reshape(-1, 2)
        self.low: list[int] = halves[:, 0].tolist()
        self.high: list[int] = halves[:, 1].tolist()
        self.opcode = [low & sass.OPCODE for low in self.low]
        self.size = len(self.low)  # without copies
        self._copy_called()
        self._find_blocks()

    def guard(self, at: int) -> int:
        """Return the predicate that guards the instruction."""
        return self.low[at] >> 12 & 7

    def position(self, at: int) -> int:
        """Return the instruction's position in the function; for a copied instruction, that of the call."""
        return self._sites.get(at, at)

    def loop_head(self, at: int) -> int:
        """Return the first instruction of the innermost loop around `at`, or `at` outside of loops."""
        heads = [target for branch, target in self.targets.items() if target <= at <= branch]
        return max(heads, default=at)

    def _copy_called(self) -> None:
        """Append the called functions; those outside of this code, or too large, remain calls."""
        self.copies: dict[int, range] = {}  # call: its copy
        self._sites: dict[int, int] = {}  # copied instruction: position of the call
        self._copy_offsets: dict[int, int] = {}  # copied instruction: its distance from the original
        at = 0
        while at < len(self.low):
            if self.opcode[at] == _RELATIVE_CALL:
                self._copy(at, self._target(at))
            at += 1

    def _copy(self, call: int, entry: int) -> None:
        body = self._function_body(entry)
        if not body or min(body) < entry:
            return
        start, length = len(self.low), max(body) + 1 - entry
        if start + length > self.size + _MAX_INLINED:
            return
        for lines in (self.low, self.high, self.opcode):
            lines += lines[entry : entry + length]
        self.copies[call] = range(start, start + length)
        self._copy_offsets |= dict.fromkeys(self.copies[call], start - entry)
        self._sites |= dict.fromkeys(self.copies[call], self.position(call))

    def _function_body(self, entry: int) -> set[int]:
        """Return the instructions of the function that starts at `entry`; empty if that is outside of this code."""
        visited: set[int] = set()
        pending = [entry]
        while pending:
            at = pending.pop()
            if at in visited or not 0 <= at < self.size:
                continue
            visited.add(at)
            if self.opcode[at] == _BRANCH:
                pending.append(self._target(at))
            if not self._is_unconditional_exit(at):
                pending.append(at + 1)
        return visited

    def _is_unconditional_exit(self, at: int) -> bool:
        """Return whether execution never continues with instruction `at` + 1."""
        if self.opcode[at] == _BRANCH and not self._is_branch_unconditional(at):
            return False
        return self.guard(at) == PT and (self.opcode[at] in _TERMINATORS or self.opcode[at] == _BRANCH)

    def _is_branch_unconditional(self, at: int) -> bool:
        """Return whether bits 87 to 89 of a branch, a condition in addition to its guard, are always true."""
        return self.high[at] >> 23 & 7 == PT

    def _find_blocks(self) -> None:
        """Set `starts` (the first instruction of each basic block), `ends`, and `predecessors` (of each block)."""
        size = len(self.low)
        self.targets = {at: self._target(at) for at, opcode in enumerate(self.opcode) if opcode == _BRANCH}
        cuts = {0, *(target for target in self.targets.values() if 0 <= target < size)}
        cuts |= {at + 1 for at, opcode in enumerate(self.opcode) if opcode == _BRANCH or opcode in _TERMINATORS}
        for call, copy in self.copies.items():
            cuts |= {call + 1, copy.start, copy.stop}
        self.starts = sorted(cut for cut in cuts if cut < size)
        self.ends = [*self.starts[1:], size]
        block_numbers = {start: block for block, start in enumerate(self.starts)}
        self.predecessors: list[list[int]] = [[] for _ in self.starts]
        for block, end in enumerate(self.ends):
            for successor in self._successors(end - 1):
                if successor in block_numbers:
                    self.predecessors[block_numbers[successor]].append(block)

    def _successors(self, at: int) -> list[int]:
        """Return the instructions that may execute after the last one of a block."""
        successors = [] if self._is_unconditional_exit(at) or at in self.copies else [at + 1]
        if at in self.targets:
            successors.append(self.targets[at])
        if at in self.copies:
            successors += [self.copies[at].start] + ([] if self.guard(at) == PT else [at + 1])
        if self.opcode[at] == _RETURN:
            successors += [call + 1 for call, copy in self.copies.items() if at in copy]
        return successors

    def _target(self, at: int) -> int:
        """Return the target instruction of a branch or a call."""
        offset = self.low[at] >> 34 | (self.high[at] & 0x3FFFF) << 30
        if self.arch >= 90:
            offset = (offset << 8 | self.low[at] >> 16 & 0xFF) & (1 << 48) - 1
        offset -= (offset >> 47) << 48
        target = at + 1 + offset * 4 // sass.INSTRUCTION
        return target - self._copy_offsets.get(at, 0) if self.opcode[at] in CALLS else target
