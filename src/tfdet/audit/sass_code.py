"""Machine code of Volta and later as a program: instructions, called functions, basic blocks and what leads to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tfdet.audit import sass

PT = 7  # the predicate that is always true
CALLS = frozenset({0x143, 0x144})
_RELATIVE_CALL = 0x144
_BRANCH, _RETURN = 0x147, 0x150
_ENDS = frozenset({0x14D, _RETURN, 0x149, 0x14A, 0x14C, 0x15A})
_MAX_INLINED = 20_000  # instructions of called functions


@dataclass
class SassCode:
    """One function's code, with a copy of each function that it calls behind it, as if the call were the copy."""

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
        """The predicate that decides whether the instruction runs."""
        return self.low[at] >> 12 & 7

    def position(self, at: int) -> int:
        """Where the instruction stands in the code; a copied one stands where it is called."""
        return self._sites.get(at, at)

    def loop_head(self, at: int) -> int:
        """First instruction of the innermost loop around `at`; `at` itself where there is none."""
        heads = [target for branch, target in self.targets.items() if target <= at <= branch]
        return max(heads, default=at)

    def _copy_called(self) -> None:
        """Functions outside this code, and what would be too much, are left as calls."""
        self.copies: dict[int, range] = {}  # call: its copy
        self._sites: dict[int, int] = {}
        self._moved: dict[int, int] = {}  # how far a copied instruction lies from its original
        at = 0
        while at < len(self.low):
            if self.opcode[at] == _RELATIVE_CALL:
                self._copy(at, self._target(at))
            at += 1

    def _copy(self, call: int, entry: int) -> None:
        body = self._reached(entry)
        if not body or min(body) < entry:
            return
        start, length = len(self.low), max(body) + 1 - entry
        if start + length > self.size + _MAX_INLINED:
            return
        for lines in (self.low, self.high, self.opcode):
            lines += lines[entry : entry + length]
        self.copies[call] = range(start, start + length)
        self._moved |= dict.fromkeys(self.copies[call], start - entry)
        self._sites |= dict.fromkeys(self.copies[call], self.position(call))

    def _reached(self, entry: int) -> set[int]:
        """The instructions of the function that starts at `entry`; none where that is outside."""
        seen: set[int] = set()
        pending = [entry]
        while pending:
            at = pending.pop()
            if at in seen or not 0 <= at < self.size:
                continue
            seen.add(at)
            if self.opcode[at] == _BRANCH:
                pending.append(self._target(at))
            if not self._is_unconditional_exit(at):
                pending.append(at + 1)
        return seen

    def _is_unconditional_exit(self, at: int) -> bool:
        """Is the next instruction never the one behind it?"""
        if self.opcode[at] == _BRANCH and not self._always_taken(at):
            return False
        return self.guard(at) == PT and (self.opcode[at] in _ENDS or self.opcode[at] == _BRANCH)

    def _always_taken(self, at: int) -> bool:
        """A branch may have a condition of its own beside the guard: bits 87 to 89."""
        return self.high[at] >> 23 & 7 == PT

    def _find_blocks(self) -> None:
        """`starts`: first instruction of each basic block; `before[block]`: the blocks that lead to it."""
        size = len(self.low)
        self.targets = {at: self._target(at) for at, opcode in enumerate(self.opcode) if opcode == _BRANCH}
        cuts = {0, *(target for target in self.targets.values() if 0 <= target < size)}
        cuts |= {at + 1 for at, opcode in enumerate(self.opcode) if opcode == _BRANCH or opcode in _ENDS}
        for call, copy in self.copies.items():
            cuts |= {call + 1, copy.start, copy.stop}
        self.starts = sorted(cut for cut in cuts if cut < size)
        self.ends = [*self.starts[1:], size]
        self.number = {start: block for block, start in enumerate(self.starts)}
        self.before: list[list[int]] = [[] for _ in self.starts]
        for block, end in enumerate(self.ends):
            for following in self._successors(end - 1):
                if following in self.number:
                    self.before[self.number[following]].append(block)

    def _successors(self, at: int) -> list[int]:
        """The instructions that may follow the last one of a block."""
        found = [] if self._is_unconditional_exit(at) or at in self.copies else [at + 1]
        if at in self.targets:
            found.append(self.targets[at])
        if at in self.copies:
            found += [self.copies[at].start] + ([] if self.guard(at) == PT else [at + 1])
        if self.opcode[at] == _RETURN:
            found += [call + 1 for call, copy in self.copies.items() if at in copy]
        return found

    def _target(self, at: int) -> int:
        """The instruction that a branch or a call goes to."""
        offset = self.low[at] >> 34 | (self.high[at] & 0x3FFFF) << 30
        if self.arch >= 90:
            offset = (offset << 8 | self.low[at] >> 16 & 0xFF) & (1 << 48) - 1
        offset -= (offset >> 47) << 48
        target = at + 1 + offset * 4 // sass.INSTRUCTION
        return target - self._moved.get(at, 0) if self.opcode[at] in CALLS else target
