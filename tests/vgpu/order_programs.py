"""Random programs for order_kernels.py: launches, copies and fills on several streams, on the same memory.

The interpreter of interleavings.py runs a program as one kernel: each operation has threads of its own, and a barrier
before its first step waits for the operations that CUDA puts before it.
"""

import ctypes
import random
import sys
from typing import NamedTuple

from interleavings import GLOBAL, Access, Barrier, Kernel, Operand
from order_kernels import BLOCKS, RandomKernel, Runner, main

WORD = 4  # bytes
LEGACY, BLOCKING, OTHER = "legacy", ("blocking",), ("first", "second")  # streams; OTHER: non-blocking
STREAMS = ((*OTHER,), (*OTHER,), (*OTHER, LEGACY), (LEGACY, *BLOCKING, *OTHER))
# Calls that order operations.  record: an event on a stream; fork: another stream waits for it; await: the host waits.
ORDERS = ("fork", "fork", "fork", "await stream", "await event", "await all", "record")
KINDS = ("launch", "launch", "launch", "copy", "fill", "in", "out")
NON_BLOCKING, MAX_OPERATIONS = 1, 3


class Launch(RandomKernel):
    """One launch of a program."""

    shapes = ([(1, 1, [0])], [(1, 2, [0, 1])], [(1, 64, [0, 32])], BLOCKS[:1])
    segments = (1, 1, 1, 2)
    barriers = ("block",)


class Transfer(NamedTuple):
    """A transfer of words: to the host or from it (`out`, `in`), on the device (`copy`), or of one value (`fill`)."""

    kind: str
    offset: int
    source: int  # of a copy
    count: int  # words
    value: int

    @property
    def kernel(self):
        """Return a kernel for the interpreter: a thread for each word, since words are copied in any order."""
        code = [self.word_steps(WORD * k, k) for k in range(self.count)]
        kept = list(range(self.count)) if self.kind == "out" else []
        return Kernel(code, [0] * self.count, [0] * self.count, self.count, kept, b"")

    def word_steps(self, distance, register):
        """Return the steps for one word."""
        at = self.source if self.kind == "copy" else self.offset
        load = Access("ld", "u32", "global", at + distance, False, Operand("constant", 0), 0, "", register, None)
        value = Operand("register", register) if self.kind == "copy" else Operand("constant", self.value)
        store = load._replace(what="st", offset=self.offset + distance, operand=value, target=None)
        return {"out": [load], "copy": [load, store]}.get(self.kind, [store])


class Call(NamedTuple):
    """A call of the program: an operation, or one that puts operations in order."""

    name: str  # operate, record, fork, await stream, await event, await all
    stream: str
    other: str  # fork: the stream that waits
    operation: int | None


class Program:
    """A random program: its calls, and as `kernel` the same program for the interpreter."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.streams = rng.choice(STREAMS)
        kinds = ["launch", *rng.choices(KINDS, k=rng.choice([1, 1, MAX_OPERATIONS - 1]))]
        rng.shuffle(kinds)
        self.operations = [self.draw_operation(kind, f"{seed} {k}") for k, kind in enumerate(kinds)]
        self.calls = self.draw_calls()
        self.registers = []  # of each operation: their numbers in `kernel`
        initial = bytes(rng.choice([0, 0, 1]) if k % WORD == 0 else 0 for k in range(GLOBAL))
        self.kernel = self.as_kernel(initial)

    def draw_operation(self, kind, seed):
        rng = self.rng
        if kind == "launch":
            return Launch(seed)
        count = rng.choice([1, 1, 2])
        first, second = rng.choice([(0, 8), (8, 0), (0, 12) if count == 1 else (0, 8)])
        return Transfer(kind, first, second, count, rng.randrange(2))

    def draw_calls(self):
        rng, calls = self.rng, []
        for index in range(len(self.operations)):
            if index and rng.random() < 0.6:
                # The legacy stream has implicit order only.
                stream, other = (rng.choice([name for name in self.streams if name != LEGACY]) for _ in range(2))
                calls.append(Call(rng.choice(ORDERS), stream, other, None))
            calls.append(Call("operate", rng.choice(self.streams), "", index))
        return calls

    def predecessors(self):
        """Return, for each operation, the operations that CUDA's order of streams puts before it."""
        last = {stream: frozenset() for stream in self.streams}  # what the next operation of a stream waits for
        host = event = frozenset()
        result = []
        for name, stream, other, operation in self.calls:
            if name == "operate":
                # The legacy stream waits for the blocking streams before an operation, and these for it behind.
                group = [name for name in self.streams if name in (LEGACY, *BLOCKING)] if stream == LEGACY else [stream]
                waits = host.union(*(last[name] for name in group))
                result.append(waits)
                last.update(dict.fromkeys(group, waits | {operation}))
            elif name in ("record", "fork"):
                event = last[stream]
                if name == "fork":
                    last[other] |= event
            else:
                ended = {"await stream": last[stream], "await event": event}
                host |= ended[name] if name in ended else frozenset().union(*last.values())
        return result

    def as_kernel(self, initial):
        """Return one kernel whose threads are those of all operations."""
        code, threads, blocks, kept, registers, members = [], [], [], [], 0, []
        for operation in self.operations:
            own, first, first_block = operation.kernel, len(code), max(blocks, default=-1) + 1
            self.registers.append(range(registers, registers + own.registers))
            code += [[renumbered(step, registers, first) for step in steps] for steps in own.code]
            threads += own.threads
            blocks += [first_block + block for block in own.blocks]
            kept += [registers + k for k in own.kept]
            registers += own.registers
            members.append(tuple(range(first, len(code))))
        for operation, before in enumerate(self.predecessors()):
            group = members[operation] + tuple(thread for other in sorted(before) for thread in members[other])
            for thread in group:
                barrier = Barrier(f"operation {operation}", group, thread in members[operation])
                code[thread].insert(0 if barrier.waits else len(code[thread]), barrier)
        return Kernel(code, threads, blocks, registers, kept, initial)

    def text(self):
        """Return the text of the kernels, and what else the program does."""
        kernels = [part.text() for part in self.operations if isinstance(part, Launch)]
        transfers = [f"{k}: {part}" for k, part in enumerate(self.operations) if isinstance(part, Transfer)]
        return "\n".join([*kernels, *transfers, *map(str, self.calls)])


def renumbered(step, register, thread):
    """Return the step with its registers and threads counted from these."""
    if isinstance(step, Barrier):
        return step._replace(group=tuple(thread + k for k in step.group))
    operand, guard = step.operand, step.guard
    if operand.kind == "register":
        operand = operand._replace(number=register + operand.number)
    return step._replace(
        target=None if step.target is None else register + step.target,
        operand=operand,
        guard=guard and (register + guard[0], guard[1]),
    )


class ProgramRunner(Runner):
    """A runner of programs."""

    def __init__(self):
        super().__init__()
        device = self.device
        self.streams = {LEGACY: None, **{name: device.stream(0) for name in BLOCKING}}
        self.streams.update({name: device.stream(NON_BLOCKING) for name in OTHER})
        self.event = device.event()
        self.pinned = ctypes.c_void_p()
        assert device.cuda.cuMemHostAlloc(ctypes.byref(self.pinned), ctypes.c_size_t(GLOBAL * MAX_OPERATIONS), 0) == 0

    def run(self, program):
        modules = [self.load(part) if isinstance(part, Launch) else None for part in program.operations]
        results = self.launches(program, [module and module[1] for module in modules])
        for module in filter(None, modules):
            self.device.cuda.cuModuleUnload(module[0])
        return results

    def launch(self, program, functions):
        """Run the program; return (global memory, the registers that it keeps), and whether it was proved."""
        memory = self.memory(program.kernel)
        outs = [self.registers(part) if isinstance(part, Launch) else None for part in program.operations]
        assert self.device.cuda.cuCtxSynchronize() == 0
        for call in program.calls:
            if call.name == "operate":
                index = call.operation
                result = self.operate(program, index, functions[index], memory, outs[index], self.streams[call.stream])
            else:
                result = self.put_in_order(call)
            assert result == 0, f"CUDA's error {result} in {call} of {program.text()}"
        proved = self.is_proved()
        return (self.global_memory(memory), tuple(self.kept(program, outs))), proved

    def put_in_order(self, call):
        """Do a call that puts operations in order; return CUDA's result."""
        cuda, stream = self.device.cuda, self.streams[call.stream]
        if call.name in ("record", "fork"):
            result = cuda.cuEventRecord(self.event, stream)
            return result or (call.name == "fork" and cuda.cuStreamWaitEvent(self.streams[call.other], self.event, 0))
        if call.name == "await stream":
            return cuda.cuStreamSynchronize(stream)
        return cuda.cuEventSynchronize(self.event) if call.name == "await event" else cuda.cuCtxSynchronize()

    def operate(self, program, index, function, memory, out, stream):
        """Enqueue an operation; return CUDA's result."""
        part = program.operations[index]
        if isinstance(part, Launch):
            return self.enqueue(part, function, memory, out, stream)
        return self.transfer(part, memory, self.host(index), stream)

    def host(self, index):
        """Return the address of the host memory of an operation."""
        return self.pinned.value + GLOBAL * index

    def kept(self, program, outs):
        """Return the registers that each thread of the program keeps; those of other operations are zeros."""
        for index, part in enumerate(program.operations):
            own = program.registers[index]
            for row in self.rows_of(part, index, outs[index]):
                yield tuple(row[k - own.start] if k in own else 0 for k in program.kernel.kept)

    def rows_of(self, part, index, out):
        """Return the registers of each thread of an operation."""
        if isinstance(part, Launch):
            return self.rows(part, out)
        words = (ctypes.c_uint32 * part.count).from_address(self.host(index))
        return [[word if k == thread else 0 for k, word in enumerate(words)] for thread in range(part.count)]

    def transfer(self, part, memory, host, stream):
        """Enqueue a copy or fill on a stream; return CUDA's result."""
        cuda, size = self.device.cuda, ctypes.c_size_t(WORD * part.count)
        target, source = (ctypes.c_uint64(memory.value + offset) for offset in (part.offset, part.source))
        if part.kind == "fill":
            return cuda.cuMemsetD32Async(target, part.value, ctypes.c_size_t(part.count), stream)
        if part.kind == "copy":
            return cuda.cuMemcpyDtoDAsync_v2(target, source, size, stream)
        if part.kind == "out":
            return cuda.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(host), target, size, stream)
        (ctypes.c_uint32 * part.count).from_address(host)[:] = [part.value] * part.count
        return cuda.cuMemcpyHtoDAsync_v2(target, ctypes.c_void_p(host), size, stream)


if __name__ == "__main__":
    sys.exit(main(Program, ProgramRunner))
