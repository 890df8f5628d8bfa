"""All that a kernel of a few threads may leave: every interleaving of its memory operations, one after the other.

An access is one step, of any width, and so is each turn of a compare-and-swap loop.  No thread passes a barrier before
all that it waits for have come there.  A state that was met before is not walked through again.
"""

import struct
from typing import NamedTuple

GLOBAL, SHARED = 16, 16  # bytes of the grid's memory, and of each block's
WIDTH = {"u8": 1, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "f64": 8}
PACKED = {"s32": "<i", "f32": "<f", "f64": "<d"}
NAN = {"f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}


class Undefined(Exception):
    """An interleaving uses what nobody has written."""


class TooManyStates(Exception):
    pass


class Operand(NamedTuple):
    kind: str  # constant, register, or thread: some bits of the thread's number
    number: int


class Access(NamedTuple):
    """One memory operation; `guess` and `swap`, one behind the other, are the load and the loop of an update."""

    what: str  # ld, st, guess, swap or an atomic
    type: str
    space: str  # global or shared
    offset: int
    by_thread: bool  # threads of odd number take the element behind it
    operand: Operand
    desired: int  # cas
    update: str  # swap
    target: int | None  # register
    guard: tuple | None  # a register, and the number that it has to hold

    def at(self, thread):
        return self.offset + (WIDTH[self.type] if self.by_thread and thread & 1 else 0)


class Barrier(NamedTuple):
    number: int
    group: tuple  # the threads' indices
    waits: bool  # or only arrives


class Kernel(NamedTuple):
    """`code` has a list of accesses and barriers for each of the threads that do something."""

    code: list
    threads: list  # their numbers in the grid
    blocks: list  # the block of each
    registers: int
    kept: list  # registers that each thread writes out at its end
    initial: bytes  # of global memory; what is behind it is not written


class State(NamedTuple):
    done: tuple  # of each thread: how many of its steps
    registers: tuple  # of each thread; None: undefined
    memory: bytes
    unwritten: int  # a bit for each byte


def as_number(bits, type):
    return struct.unpack(PACKED[type], bits.to_bytes(WIDTH[type], "little"))[0]


def as_bits(number, type):
    if number != number:
        return NAN[type]
    try:
        return int.from_bytes(struct.pack(PACKED[type], number), "little")
    except OverflowError:
        return as_bits(float("inf") if number > 0 else float("-inf"), type)


def without_subnormal(bits):
    return bits if bits & 0x7F800000 else bits & 0x80000000


def updated(what, type, old, given, desired=0):
    """What an atomic leaves."""
    if what == "exch":
        return given
    if what == "cas":
        return desired if old == given else old
    if what in ("max", "min"):
        key = (lambda bits: as_number(bits, type)) if type == "s32" else None
        return (max if what == "max" else min)(old, given, key=key)
    if type in NAN:
        return as_bits(as_number(old, type) + as_number(given, type), type)
    if what == "inc":
        return 0 if old >= given else old + 1
    made = {"add": old + given, "or": old | given, "and": old & given, "xor": old ^ given, "twice": 2 * old + given}[
        what
    ]
    return made % (1 << 8 * WIDTH[type])


def atomic(access, old, given):
    """In global memory single precision has no subnormals."""
    if access.type == "f32" and access.space == "global" and access.what == "add":
        old, given = without_subnormal(old), without_subnormal(given)
    return updated(access.what, access.type, old, given, access.desired)


class Walk:
    """Through the states of one kernel, from its start to all of its ends."""

    def __init__(self, kernel, most):
        self.kernel, self.most = kernel, most
        self.places = [
            {step.number: k for k, step in enumerate(code) if isinstance(step, Barrier)} for code in kernel.code
        ]

    def start(self):
        count, initial = len(self.kernel.code), self.kernel.initial
        memory = initial.ljust(GLOBAL + SHARED * (1 + max(self.kernel.blocks)), b"\0")
        unwritten = (1 << len(memory)) - (1 << len(initial))
        return State((0,) * count, ((0,) * self.kernel.registers,) * count, memory, unwritten)

    def endings(self):
        """A set of (global memory with None where nobody wrote, the threads' kept registers)."""
        start = self.start()
        met, left, ends = {start}, [start], set()
        while left:
            state = left.pop()
            following = [
                self.after(state, thread) for thread in range(len(self.kernel.code)) if self.may_go(state, thread)
            ]
            if not following:
                ends.add(self.ending(state))
            for one in following:
                if one not in met:
                    met.add(one)
                    left.append(one)
            if len(met) > self.most:
                raise TooManyStates
        return ends

    def may_go(self, state, thread):
        code, done = self.kernel.code[thread], state.done[thread]
        if done == len(code):
            return False
        step = code[done]
        if isinstance(step, Access) or not step.waits:
            return True
        return all(state.done[one] >= self.places[one][step.number] for one in step.group)

    def ending(self, state):
        assert all(done == len(code) for done, code in zip(state.done, self.kernel.code, strict=True)), "a deadlock"
        kept = tuple(tuple(own[k] for k in self.kernel.kept) for own in state.registers)
        if any(None in one for one in kept):
            raise Undefined
        return tuple(None if state.unwritten >> k & 1 else state.memory[k] for k in range(GLOBAL)), kept

    def after(self, state, thread):
        step = self.kernel.code[thread][state.done[thread]]
        own = state.registers[thread]
        if isinstance(step, Barrier) or not self.is_chosen(step, own):
            return self.advanced(state, thread)
        at = step.at(self.kernel.threads[thread])
        if step.space == "shared":
            at += GLOBAL + SHARED * self.kernel.blocks[thread]
        if step.what == "st":
            return self.advanced(self.stored(state, at, step, self.given(step, thread, own)), thread)
        old = self.loaded(state, at, step)
        if step.what == "swap":
            return self.tried(state, thread, at, old)
        if step.what not in ("ld", "guess"):
            if old is None and step.what != "exch":
                raise Undefined
            state = self.stored(state, at, step, atomic(step, old, self.given(step, thread, own)))
        return self.advanced(self.with_register(state, thread, step.target, old), thread)

    def tried(self, state, thread, at, old):
        """One turn of the loop: in vain where the guess was wrong."""
        step = self.kernel.code[thread][state.done[thread]]
        own = state.registers[thread]
        if old is None or own[step.target] is None:
            raise Undefined
        if own[step.target] != old:
            return self.with_register(state, thread, step.target, old)
        made = updated(step.update, step.type, old, self.given(step, thread, own))
        return self.advanced(self.stored(state, at, step, made), thread)

    @staticmethod
    def is_chosen(step, own):
        if step.guard and own[step.guard[0]] is None:
            raise Undefined
        return not step.guard or own[step.guard[0]] == step.guard[1]

    def given(self, step, thread, own):
        """The operand."""
        kind, number = step.operand
        value = {"constant": number, "thread": self.kernel.threads[thread] & number}.get(kind)
        value = own[number] if kind == "register" else value
        if value is None:
            raise Undefined
        return value % (1 << 8 * WIDTH[step.type])

    @staticmethod
    def loaded(state, at, step):
        width = WIDTH[step.type]
        if state.unwritten >> at & ((1 << width) - 1):
            return None
        return int.from_bytes(state.memory[at : at + width], "little")

    @staticmethod
    def stored(state, at, step, value):
        width = WIDTH[step.type]
        memory = state.memory[:at] + value.to_bytes(width, "little") + state.memory[at + width :]
        return State(state.done, state.registers, memory, state.unwritten & ~(((1 << width) - 1) << at))

    @staticmethod
    def with_register(state, thread, register, value):
        if register is None:
            return state
        own = state.registers[thread]
        own = (*own[:register], value, *own[register + 1 :])
        registers = (*state.registers[:thread], own, *state.registers[thread + 1 :])
        return State(state.done, registers, state.memory, state.unwritten)

    @staticmethod
    def advanced(state, thread):
        done = (*state.done[:thread], state.done[thread] + 1, *state.done[thread + 1 :])
        return State(done, state.registers, state.memory, state.unwritten)


def endings(kernel, most):
    """What the kernel may leave.  Raises Undefined, or TooManyStates where there are more than `most`."""
    return Walk(kernel, most).endings()
