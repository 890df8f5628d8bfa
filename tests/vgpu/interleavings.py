"""A model checker for kernels of a few threads: it visits every interleaving of their memory operations.

A memory access of any width is one step, and so is each iteration of a compare-and-swap loop.  A thread passes a
barrier once all threads that it waits for have reached it.  A state that was visited before is not visited again.
"""

import struct
from typing import NamedTuple

GLOBAL, SHARED = 16, 16  # bytes of the grid's memory, and of each block's
WIDTH = {"u8": 1, "u32": 4, "s32": 4, "f32": 4, "u64": 8, "f64": 8}
PACKED = {"s32": "<i", "f32": "<f", "f64": "<d"}
NAN = {"f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000}


class Undefined(Exception):
    """An error: an interleaving reads memory or a register that no thread wrote."""


class TooManyStates(Exception):
    """An error: the kernel has more states than the limit."""


class Operand(NamedTuple):
    """Where an access takes its value from: a constant, a register, or the thread's index."""

    kind: str  # constant, register, or thread: some bits of the thread's number
    number: int  # the constant, the number of the register, or a mask for the thread's number


class Access(NamedTuple):
    """A memory operation; an update by compare-and-swap is a `cas_load` followed by a `cas_loop`."""

    what: str  # ld, st, cas_load, cas_loop or an atomic
    type: str
    space: str  # global or shared
    offset: int
    odd_threads_access_next: bool  # threads of odd number take the element behind it
    operand: Operand
    desired: int  # of a cas, the new value
    update: str  # of a cas_loop, what it computes
    target: int | None  # register
    guard: tuple | None  # a register, and the number that it has to hold

    def at(self, thread):
        """Return the address that the thread accesses."""
        return self.offset + (WIDTH[self.type] if self.odd_threads_access_next and thread & 1 else 0)


class Barrier(NamedTuple):
    """A barrier; a thread that waits at it passes once all threads of the group have reached it."""

    number: int
    group: tuple  # the threads' indices
    waits: bool  # or only arrives


class Kernel(NamedTuple):
    """A kernel; `code` has a list of accesses and barriers for each thread that has any."""

    code: list
    threads: list  # their numbers in the grid
    blocks: list  # the block of each
    registers: int
    kept: list  # registers that each thread writes out at its end
    initial: bytes  # of global memory; what is behind it is not written


class State(NamedTuple):
    """Where each thread is, its registers, and memory, with the bytes that no thread wrote, or wrote undefined."""

    positions: tuple  # of each thread: the number of its steps so far
    registers: tuple  # of each thread; None: undefined
    memory: bytes
    unwritten: int  # a bit for each byte


def as_number(bits, type):
    """Return the number that the bits stand for."""
    return struct.unpack(PACKED[type], bits.to_bytes(WIDTH[type], "little"))[0]


def as_bits(number, type):
    """Return the bits of the number."""
    if number != number:
        return NAN[type]
    try:
        return int.from_bytes(struct.pack(PACKED[type], number), "little")
    except OverflowError:
        return as_bits(float("inf") if number > 0 else float("-inf"), type)


def without_subnormal(bits):
    """Return the bits, or a zero of their sign if they are subnormal."""
    return bits if bits & 0x7F800000 else bits & 0x80000000


def apply_atomic(operation, type, old, operand, desired=0):
    """Return the value in memory after an atomic."""
    if operation == "exch":
        return operand
    if operation == "cas":
        return desired if old == operand else old
    if operation in ("max", "min"):
        key = (lambda bits: as_number(bits, type)) if type == "s32" else None
        return (max if operation == "max" else min)(old, operand, key=key)
    if type in NAN:
        return as_bits(as_number(old, type) + as_number(operand, type), type)
    if operation == "inc":
        return 0 if old >= operand else old + 1
    result = {
        "add": old + operand,
        "or": old | operand,
        "and": old & operand,
        "xor": old ^ operand,
        "twice": 2 * old + operand,  # computed by a compare-and-swap loop alone
    }[operation]
    return result % (1 << 8 * WIDTH[type])


def atomic(access, old, operand):
    """Return the value after an atomic of `access`; float additions to global memory flush subnormals."""
    if access.type == "f32" and access.space == "global" and access.what == "add":
        old, operand = without_subnormal(old), without_subnormal(operand)
    return apply_atomic(access.what, access.type, old, operand, access.desired)


class StateSearch:
    """A visit of all states of a kernel, from the start to every end."""

    def __init__(self, kernel, max_states):
        self.kernel, self.max_states = kernel, max_states
        self.barrier_positions = [
            {step.number: k for k, step in enumerate(code) if isinstance(step, Barrier)} for code in kernel.code
        ]

    def start(self):
        """Return the first state."""
        count, initial = len(self.kernel.code), self.kernel.initial
        memory = initial.ljust(GLOBAL + SHARED * (1 + max(self.kernel.blocks)), b"\0")
        unwritten = (1 << len(memory)) - (1 << len(initial))
        return State((0,) * count, ((0,) * self.kernel.registers,) * count, memory, unwritten)

    def final_states(self):
        """Return a set of (global memory with None for unwritten bytes, the threads' kept registers)."""
        start = self.start()
        visited, pending, ends = {start}, [start], set()
        while pending:
            state = pending.pop()
            successors = [
                self.step_thread(state, thread)
                for thread in range(len(self.kernel.code))
                if self.can_step(state, thread)
            ]
            if not successors:
                ends.add(self.final_state(state))
            for successor in successors:
                if successor not in visited:
                    visited.add(successor)
                    pending.append(successor)
            if len(visited) > self.max_states:
                raise TooManyStates
        return ends

    def can_step(self, state, thread):
        """Return whether the thread has a next step that need not wait."""
        code, position = self.kernel.code[thread], state.positions[thread]
        if position == len(code):
            return False
        step = code[position]
        if isinstance(step, Access) or not step.waits:
            return True
        return all(state.positions[other] >= self.barrier_positions[other][step.number] for other in step.group)

    def final_state(self, state):
        """Return (global memory, kept registers) of a state in which all threads ended."""
        assert all(position == len(code) for position, code in zip(state.positions, self.kernel.code, strict=True)), (
            "a deadlock"
        )
        kept = tuple(tuple(registers[k] for k in self.kernel.kept) for registers in state.registers)
        if any(None in registers for registers in kept):
            raise Undefined
        return tuple(None if state.unwritten >> k & 1 else state.memory[k] for k in range(GLOBAL)), kept

    def step_thread(self, state, thread):
        """Return the state after the next step of a thread."""
        step = self.kernel.code[thread][state.positions[thread]]
        registers = state.registers[thread]
        if isinstance(step, Barrier) or not self.is_chosen(step, registers):
            return self.advance(state, thread)
        address = step.at(self.kernel.threads[thread])
        if step.space == "shared":
            address += GLOBAL + SHARED * self.kernel.blocks[thread]
        if step.what == "st":
            if step.space == "shared" and self.is_undefined(step, registers):  # not a result, unless it is read
                return self.advance(self.forget(state, address, step), thread)
            return self.advance(self.store(state, address, step, self.operand_value(step, thread, registers)), thread)
        old = self.load(state, address, step)
        if step.what == "cas_loop":
            return self.try_swap(state, thread, address, old)
        if step.what not in ("ld", "cas_load"):
            if old is None and step.what != "exch":
                raise Undefined
            state = self.store(state, address, step, atomic(step, old, self.operand_value(step, thread, registers)))
        return self.advance(self.set_register(state, thread, step.target, old), thread)

    def try_swap(self, state, thread, address, old):
        """Return the state after one iteration of a loop, which fails if the loaded value differs from memory."""
        step = self.kernel.code[thread][state.positions[thread]]
        registers = state.registers[thread]
        if old is None or registers[step.target] is None:
            raise Undefined
        if registers[step.target] != old:
            return self.set_register(state, thread, step.target, old)
        result = apply_atomic(step.update, step.type, old, self.operand_value(step, thread, registers))
        return self.advance(self.store(state, address, step, result), thread)

    @staticmethod
    def is_chosen(step, registers):
        """Return whether the guard of the step holds."""
        if step.guard and registers[step.guard[0]] is None:
            raise Undefined
        return not step.guard or registers[step.guard[0]] == step.guard[1]

    def operand_value(self, step, thread, registers):
        """Return the value of the operand."""
        kind, number = step.operand
        if self.is_undefined(step, registers):
            raise Undefined
        value = {"constant": number, "thread": self.kernel.threads[thread] & number}.get(kind)
        value = registers[number] if kind == "register" else value
        return value % (1 << 8 * WIDTH[step.type])

    @staticmethod
    def is_undefined(step, registers):
        """Return whether the operand is an undefined register."""
        kind, number = step.operand
        return kind == "register" and registers[number] is None

    @staticmethod
    def load(state, address, step):
        """Return the value in memory, or None if no thread wrote it."""
        width = WIDTH[step.type]
        if state.unwritten >> address & ((1 << width) - 1):
            return None
        return int.from_bytes(state.memory[address : address + width], "little")

    @staticmethod
    def store(state, address, step, value):
        """Return the state with the value in memory."""
        width = WIDTH[step.type]
        memory = state.memory[:address] + value.to_bytes(width, "little") + state.memory[address + width :]
        return State(state.positions, state.registers, memory, state.unwritten & ~(((1 << width) - 1) << address))

    @staticmethod
    def forget(state, address, step):
        """Return the state after a store of an undefined value: its bytes count as not written."""
        width = WIDTH[step.type]
        memory = state.memory[:address] + bytes(width) + state.memory[address + width :]
        return State(state.positions, state.registers, memory, state.unwritten | ((1 << width) - 1) << address)

    @staticmethod
    def set_register(state, thread, register, value):
        """Return the state with the value in the thread's register."""
        if register is None:
            return state
        thread_registers = state.registers[thread]
        thread_registers = (*thread_registers[:register], value, *thread_registers[register + 1 :])
        registers = (*state.registers[:thread], thread_registers, *state.registers[thread + 1 :])
        return State(state.positions, registers, state.memory, state.unwritten)

    @staticmethod
    def advance(state, thread):
        """Return the state in which the thread is at its next step."""
        positions = (*state.positions[:thread], state.positions[thread] + 1, *state.positions[thread + 1 :])
        return State(positions, state.registers, state.memory, state.unwritten)


def final_states(kernel, max_states):
    """Return all results of the kernel; raise Undefined, or TooManyStates if there are more than the limit."""
    return StateSearch(kernel, max_states).final_states()
