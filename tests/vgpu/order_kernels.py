"""A test of VGPU_CHECK=order, which proves that no schedule changes what a kernel computes.

    python tests/vgpu/order_kernels.py COUNT [SEED [sass|gpu]]

The command visits all interleavings of small random kernels, and runs each kernel on the virtual GPU in several
schedules.  It counts the kernels with one result (independent) and with several (differs), proved and not proved.
The exit code is 1 if a kernel is proved but differs, or if the device computes what no interleaving does.
sass: run machine code, compiled by ptxas.
gpu: run each kernel 20 times on the GPU whose library VGPU_LIBRARY names (libcuda.so.1), which proves nothing.
"""

import collections
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from interleavings import (
    GLOBAL,
    SHARED,
    WIDTH,
    Access,
    Barrier,
    Kernel,
    Operand,
    TooManyStates,
    Undefined,
    as_bits,
    final_states,
)
from virtual_device import HEAD, Device, build

MAX_STATES = 10000
SCHEDULES = ("serial", "reverse", "random:1", "adversary:2")
# Shapes of kernels: (blocks, threads of a block, threads of the grid that do anything).
ONE_WARP = [(1, 2, [0, 1]), (1, 3, [0, 1, 2])]
WARPS = [(1, 64, [0, 32]), (1, 64, [0, 1, 32]), (1, 96, [0, 32, 64])]
BLOCKS = [(2, 1, [0, 1]), (2, 2, [0, 1, 2]), (2, 2, [0, 1, 2, 3])]
NUMBERS = [1.0, 0.5, 0.1, 1e8, -1.0, 3.3, 0.0, 1e-39]  # addends
ATOMICS = {
    "u32": ("add", "or", "and", "xor", "max", "min", "exch", "cas", "inc"),
    "s32": ("max", "min"),
    "f32": ("add",),
    "u64": ("add", "or", "and", "xor", "max", "min", "exch", "cas"),
    "f64": ("add",),
}
# What compare-and-swap loops compute; twice: 2 * old + operand.
UPDATES = {"u32": ("add", "max", "min", "or", "xor", "twice"), "u64": ("add", "max"), "s32": ("max",), "f32": ("add",)}
BITWISE = ("or", "and", "xor", "exch", "cas")
START = """ld.param.u64 %global, [p0]; ld.param.u64 %out, [p1]; mov.u64 %shared, sh;
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %a, %ntid.x; mad.lo.u32 %i, %i, %a, %t; shr.u32 %w, %i, 5;
"""
REGISTERS = ".reg .pred %p; .reg .b32 %t, %i, %a, %w, %x; .reg .b64 %global, %out, %shared, %d, %given, %x8, %y8;\n"


class RandomKernel:
    """A random kernel: its PTX text, and as `kernel` the same kernel for the interpreter."""

    shapes = (ONE_WARP, WARPS, WARPS, BLOCKS)
    segments = (1, 1, 2, 3)  # numbers of them
    barriers = ("block", "block", "warp", "some")

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.grid, self.block, self.threads = rng.choice(rng.choice(self.shapes))
        self.widths = []  # of the registers
        self.private = set()  # registers of loops, which no other code reads
        self.lines, self.labels = [], 0
        self.code = [[] for _ in self.threads]
        self.draw_habits()
        for number in range(rng.choice(self.segments)):
            if number:
                self.add_barrier(number)
            self.add_segment()
        initial = bytes(rng.choice([0, 0, 0, 1, 2]) if k % 4 == 0 else 0 for k in range(rng.choice([8, 16, 16])))
        # The registers that each thread stores at its end, for the comparison.
        kept = [k for k in range(len(self.widths)) if k not in self.private and rng.random() < 0.6]
        blocks = [thread // self.block for thread in self.threads]
        self.kernel = Kernel(self.code, self.threads, blocks, len(self.widths), kept, initial)

    def draw_habits(self):
        """Draw what this kernel's accesses have in common, such as their offsets, types and operations."""
        rng = self.rng
        self.offsets = rng.choice([[0], [0], [0, 4], [0, 4, 8, 12]])
        self.spaces = rng.choice([["global"], ["global"], ["global", "shared"], ["shared"]])
        self.types = rng.choice(
            [["u32"], ["u32", "u32", "s32", "f32"], ["f32"], ["u64", "f64"], ["u32", "f32", "u64", "f64"]]
        )
        kinds = ["ld", "st", "st", "byte", "atomic", "atomic", "atomic", "loop", "loop"]
        self.kinds = rng.sample(kinds, rng.choice([1, 1, 2, 3, 4, 6]))
        self.atomics = {
            type: rng.sample(ATOMICS[type], min(rng.choice([1, 2, 4]), len(ATOMICS[type]))) for type in ATOMICS
        }
        self.updates = {type: rng.sample(UPDATES[type], 1) for type in UPDATES}
        self.uses_old = rng.choice([0.0, 0.0, 0.2, 0.7])  # probability that code may read what an atomic or loop found
        self.constants = rng.choice([1, 2, 4])  # integer constants are below this number
        self.same_code = rng.random() < 0.4  # whether all threads execute the same accesses

    def add_segment(self):
        """Add the accesses between two barriers."""
        max_accesses = 3 if len(self.threads) == 2 else 2
        if self.same_code:
            self.add_accesses(range(len(self.threads)), self.rng.randint(1, max_accesses))
            return
        for thread in range(len(self.threads)):
            self.add_accesses([thread], self.rng.randint(0, max_accesses))

    def add_accesses(self, group, count):
        """Add accesses to the code of these threads."""
        self.mine = []  # registers that hold a value
        text = ""
        for _ in range(count):
            for access in self.accesses():
                text += access_text(access, self.widths)
                for thread in group:
                    self.code[thread].append(access)
        self.add_only("%i", [self.threads[thread] for thread in group], text)

    def add_only(self, register, numbers, text):
        """Add text that only the threads, or warps, of these numbers execute."""
        first, *others = numbers
        self.labels += 1
        tests = f"setp.ne.u32 %p, {register}, {first}; " + "".join(
            f"setp.ne.and.u32 %p, {register}, {number}, %p; " for number in others
        )
        self.lines.append(f"{tests}@%p bra L{self.labels};\n{text}L{self.labels}:\n")

    def new_register(self, type):
        """Return the number of a new register for values of this type."""
        self.widths.append(max(4, WIDTH[type]))
        return len(self.widths) - 1

    def accesses(self):
        """Return one access; for a compare-and-swap loop two: the load before it, and the loop."""
        rng = self.rng
        kind, type, space = (
            rng.choice(self.kinds),
            rng.choice(self.types),
            rng.choice(self.spaces),
        )
        operation, update, target = kind, "", None
        if kind == "atomic":
            operation = rng.choice(self.atomics[type])
        elif kind == "loop":
            type = type if type in UPDATES else "u32"
            operation, update = "cas_loop", rng.choice(self.updates[type])
        else:
            type = "u8" if kind == "byte" else "u64" if WIDTH[type] == 8 else "u32"
            operation = rng.choice(["ld", "st", "st"]) if kind == "byte" else kind
        guard = (rng.choice(self.mine), rng.randrange(3)) if self.mine and rng.random() < 0.15 else None
        operand = self.operand(type)
        if operation in ("ld", "cas_loop") or (kind == "atomic" and rng.random() < self.uses_old):
            target = self.new_register(type)
            if operation != "cas_loop" or rng.random() < self.uses_old:
                self.mine.append(target)
            else:
                self.private.add(target)
        location = self.draw_location(WIDTH[type])
        access = Access(operation, type, space, *location, operand, rng.randrange(3), update, target, guard)
        if operation != "cas_loop":
            return [access]
        return [access._replace(what="cas_load", guard=None), access._replace(guard=None)]

    def draw_location(self, width):
        """Return an offset, and whether threads of odd number access the next element."""
        rng = self.rng
        offset = rng.choice(self.offsets)
        offset = offset + rng.randrange(4) if width == 1 else offset // width * width
        fits = offset + 2 * width <= min(GLOBAL, SHARED)
        return offset, self.same_code and fits and rng.random() < 0.3

    def operand(self, type):
        """Draw where an access takes its value from."""
        rng = self.rng
        if type in ("f32", "f64"):
            return Operand("constant", as_bits(rng.choice(NUMBERS), type))
        if self.mine and rng.random() < 0.3:
            return Operand("register", rng.choice(self.mine))
        if self.same_code and rng.random() < 0.4:
            return Operand("thread", rng.choice([1, 3]))
        return Operand("constant", rng.randrange(self.constants))

    def add_barrier(self, number):
        """Add a barrier: of each block or warp, of some lanes or warps, or one with a warp that only arrives."""
        rng, all_threads = self.rng, range(len(self.threads))
        kind = rng.choice(self.barriers)
        if kind == "some" and self.grid == 1:
            self.add_partial_barrier(number, sorted(rng.sample(all_threads, 2)))
            return
        size = self.block if kind == "block" else min(32, self.block)
        for thread in all_threads:
            group = tuple(k for k in all_threads if self.threads[k] // size == self.threads[thread] // size)
            self.code[thread].append(Barrier(number, group, True))
        self.lines.append("bar.sync 0;\n" if kind == "block" else "bar.warp.sync -1;\n")

    def add_partial_barrier(self, number, pair):
        """Add a barrier of two threads or their warps."""
        threads = [self.threads[index] for index in pair]
        warps = [thread // 32 for thread in threads]
        group = tuple(pair)
        if warps[0] != warps[1]:
            group = tuple(k for k, thread in enumerate(self.threads) if thread // 32 in warps)
        arrives = warps[0] != warps[1] and self.rng.random() < 0.5
        if warps[0] == warps[1]:
            self.add_only("%i", threads, f"bar.warp.sync {sum(1 << thread % 32 for thread in threads)};\n")
        elif arrives:
            self.add_only("%w", warps[:1], f"bar.arrive {number}, 64;\n")
            self.add_only("%w", warps[1:], f"bar.sync {number}, 64;\n")
        else:
            self.add_only("%w", warps, f"bar.sync {number}, 64;\n")
        for index in group:
            waits = not arrives or self.threads[index] // 32 == warps[1]
            self.code[index].append(Barrier(number, group, waits))

    def text(self):
        """Return the PTX of the kernel."""
        sizes = enumerate(8 * width for width in self.widths)
        declarations = "".join(f".reg .b{size} %v{k}, %m{k}, %n{k}; .reg .pred %q{k};\n" for k, size in sizes)
        body = declarations + START + "".join(self.lines) + "".join(map(self.register_store, self.kernel.kept))
        parameters = ".param .b64 p0, .param .b64 p1"
        variables = f".shared .align 8 .b8 sh[{SHARED}];\n"
        return f"{HEAD}.visible .entry k({parameters}) {{\n{variables}{REGISTERS}{body}ret;\n}}\n"

    def register_store(self, register):
        """Return the PTX that stores a register for the comparison."""
        count, type = len(self.widths), f"b{8 * self.widths[register]}"
        address_text = f"mad.wide.u32 %d, %i, {8 * count}, %out;"
        return f"{address_text} st.global.{type} [%d+{8 * register}], %v{register};\n"


class RandomMachineKernel(RandomKernel):
    """A random kernel whose machine code does what its text says.

    Accesses are volatile, as ptxas would remove some otherwise.  Fences stand between accesses to different memory
    spaces, as ptxas moves volatile loads of shared memory before global atomics otherwise.  Registers start as zeros,
    as in the interpreter.  No two threads are in one warp: converged lanes run in lockstep, which the interpreter does
    not model.
    """

    shapes = (((1, 64, [0, 32]), (1, 96, [0, 32, 64])), ((2, 1, [0, 1]), (3, 1, [0, 1, 2])))
    barriers = ("block", "block", "warp")  # of some threads: not decoded

    def text(self):
        zeros = "".join(f"mov.b{8 * width} %v{k}, 0; " for k, width in enumerate(self.widths))
        text = super().text().replace(START, START + zeros + "\n")
        text = re.sub(r"\b(ld|st)\.(global|shared)\.", r"\1.volatile.\2.", text)
        text = with_fences(text)
        return text.replace("sm_90", "sm_80").replace("8.6", "8.0")


def with_fences(text):
    """Return PTX with a fence before each access to another memory space than the last access's."""
    lines, last_space = [], None
    for line in text.splitlines():
        found = re.search(r"\b(?:ld|st|red|atom)\.(?:volatile\.)?(global|shared)\.", line)
        if found and last_space not in (None, found[1]):
            lines.append("membar.cta;")
        last_space = found[1] if found else last_space
        lines.append(line)
    return "\n".join(lines) + "\n"


def access_text(access, widths):
    """Return the statements of one access."""
    element = WIDTH[access.type]
    text, address = "", f"[%{access.space}+{access.offset}]"
    if access.odd_threads_access_next:
        text, address = (
            f"and.b32 %a, %i, 1; mad.wide.u32 %d, %a, {element}, %{access.space};\n",
            f"[%d+{access.offset}]",
        )
    bits_type, operand = f"b{8 * element}", "%x8" if element == 8 else "%x"
    text += operand_text(access.operand, widths) + (
        "mov.b64 %x8, %given;\n" if element == 8 else "cvt.u32.u64 %x, %given;\n"
    )
    guard = ""
    if access.guard:
        register, number = access.guard
        text, guard = text + f"setp.eq.u{8 * widths[register]} %p, %v{register}, {number};\n", "@%p "
    if access.what in ("ld", "cas_load"):
        return text + f"{guard}ld.{access.space}.{bits_type if element > 1 else 'u8'} %v{access.target}, {address};\n"
    if access.what == "st":
        return text + f"{guard}st.{access.space}.{bits_type} {address}, {operand};\n"
    if access.what == "cas_loop":
        return text + loop_text(access, address, bits_type, operand)
    type = bits_type if access.what in BITWISE else access.type
    name = f"{access.space}.{access.what}.{type}"
    if access.target is None and access.what not in ("exch", "cas"):
        return text + f"{guard}red.{name} {address}, {operand};\n"
    desired = f", {access.desired}" if access.what == "cas" else ""
    result = "_" if access.target is None else f"%v{access.target}"
    return text + f"{guard}atom.{name} {result}, {address}, {operand}{desired};\n"


def operand_text(operand, widths):
    """Return statements that set the 64-bit register %given to the operand."""
    if operand.kind == "constant":
        return f"mov.u64 %given, {operand.number}; "
    if operand.kind == "thread":
        return f"and.b32 %x, %i, {operand.number}; cvt.u64.u32 %given, %x; "
    width = 8 * widths[operand.number]
    return f"cvt.u64.u{width} %given, %v{operand.number}; "


def loop_text(access, address, bits_type, operand):
    """Return a compare-and-swap loop.

    Each loop has registers of its own, so the device recognizes it as an update, unless it is `twice`.
    """
    k = access.target
    name = "add" if access.update == "twice" else access.update
    update = f"{name}.{bits_type if name in BITWISE else access.type} %n{k}, %m{k}, {operand};"
    if access.update == "twice":
        update += f" add.{access.type} %n{k}, %n{k}, %m{k};"
    swap = (
        f"atom.{access.space}.cas.{bits_type} %v{k}, {address}, %m{k}, %n{k}; "
        f"setp.ne.u{bits_type[1:]} %q{k}, %v{k}, %m{k};"
    )
    return f"AGAIN{k}: mov.{bits_type} %m{k}, %v{k}; {update} {swap} @%q{k} bra AGAIN{k};\n"


class Runner:
    """A runner of kernels on the device, which reads the device's verdicts."""

    def __init__(self):
        self.report = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 - as long as the process
        os.environ.update(VGPU_CHECK="order", VGPU_REPORT=self.report.name, VGPU_MAX_INSTRUCTIONS="10000000")
        self.device = Device(build())

    def image(self, generated):
        """Return what is loaded: the PTX."""
        return generated.text()

    def load(self, generated):
        """Load the kernel; return its module and function."""
        result, module = self.device.load(self.image(generated))
        result, function = self.device.function(module) if result == 0 else (result, None)
        assert result == 0, f"CUDA's error {result} for {generated.text()}"
        return module, function

    def run(self, generated):
        """Run the kernel in each schedule; return the results as launches() does."""
        module, function = self.load(generated)
        results = self.launches(generated, function)
        self.device.cuda.cuModuleUnload(module)
        return results

    def launches(self, generated, function):
        """Return (schedule, the kernel's result, whether it was proved) for each schedule."""
        results = []
        for schedule in SCHEDULES:
            assert self.device.cuda.vgpu_set_schedule(schedule.encode()) == 0
            results.append((schedule, *self.launch(generated, function)))
            self.report.read()  # on copies to the host, of which some bytes may be unwritten
        return results

    def is_proved(self):
        """Wait for the device; return whether the new lines of the report say that all operations were proved."""
        assert self.device.cuda.cuCtxSynchronize() == 0
        lines = [json.loads(line) for line in self.report]
        assert any("kernel" in line for line in lines)
        return all(line["order"]["proved"] for line in lines)

    def launch(self, generated, function):
        """Launch a kernel; return (global memory, the registers that it keeps), and whether it was proved."""
        memory, out = self.memory(generated.kernel), self.registers(generated)
        result = self.enqueue(generated, function, memory, out)
        assert result == 0, f"CUDA's error {result} for {generated.text()}"
        proved = self.is_proved()
        rows = tuple(tuple(row[k] for k in generated.kernel.kept) for row in self.rows(generated, out))
        return (self.global_memory(memory), rows), proved

    def memory(self, kernel):
        """Allocate global memory with its first bytes."""
        memory, initial = self.device.allocate(GLOBAL), kernel.initial
        self.device.cuda.cuMemcpyHtoD_v2(memory, initial, ctypes.c_size_t(len(initial)))
        return memory

    def global_memory(self, memory):
        """Return the bytes of global memory and free it."""
        content = ctypes.create_string_buffer(GLOBAL)
        self.device.cuda.cuMemcpyDtoH_v2(content, memory, ctypes.c_size_t(GLOBAL))
        self.device.cuda.cuMemFree_v2(memory)
        return content.raw

    def registers(self, generated):
        """Allocate memory for the registers of all threads of a launch."""
        size = 8 * generated.grid * generated.block * generated.kernel.registers
        out = self.device.allocate(size)
        self.device.cuda.cuMemsetD8_v2(out, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        return out

    def rows(self, generated, out):
        """Return the registers of each thread of the kernel and free their memory."""
        count = generated.kernel.registers
        registers = (ctypes.c_uint64 * max(generated.grid * generated.block * count, 1))()
        self.device.cuda.cuMemcpyDtoH_v2(registers, out, ctypes.c_size_t(8 * generated.grid * generated.block * count))
        self.device.cuda.cuMemFree_v2(out)
        return [registers[thread * count : (thread + 1) * count] for thread in generated.kernel.threads]

    def enqueue(self, generated, function, memory, out, stream=None):
        """Launch a kernel on a stream; return CUDA's result."""
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(out))
        grid, block = generated.grid, generated.block
        return self.device.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, arguments, None)


class MachineRunner(Runner):
    def __init__(self):
        os.environ.update(VGPU_CODE="sass", VGPU_COMPUTE_CAPABILITY="80")
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def image(self, generated):
        text, code = (Path(self.folder.name, name) for name in ("k.ptx", "k.cubin"))
        text.write_text(generated.text(), "utf-8")
        subprocess.run(["ptxas", "-arch=sm_80", str(text), "-o", str(code)], check=True)
        return code.read_bytes()


class GpuRunner(Runner):
    """A runner of kernels on a real GPU, which has no schedules and proves nothing."""

    def __init__(self):
        self.device = Device(build())

    def launches(self, generated, function):
        return [(f"run {k}", *self.launch(generated, function)) for k in range(20)]

    def is_proved(self):
        return False


def is_among(result, ends):
    """Return whether the result is one of the interpreter's; bytes that no thread wrote may be any."""
    memory, registers = result
    return result in ends or any(
        registers == end_registers and all(a in (None, b) for a, b in zip(end_memory, memory, strict=True))
        for end_memory, end_registers in ends
    )


def judge(runner, generated, tally):
    """Count the kernel; return a message on what is wrong with it, or None."""
    try:
        ends = final_states(generated.kernel, MAX_STATES)
    except Undefined:
        ends = set()
    except TooManyStates:
        tally["left out"] += 1
        return None
    results = runner.run(generated)
    independent, proved = len(ends) == 1, results[0][2]
    tally["kernels"] += 1
    tally[f"{'' if proved else 'not '}proved, {'independent' if independent else 'differs'}"] += 1
    if len({result for _, result, _ in results}) > 1:
        tally["seen to differ"] += 1
    if not independent and any(verdict for _, _, verdict in results):
        return f"proved, and leaves {len(ends) or 'undefined'} results"
    for name, result, _ in results:
        if ends and not is_among(result, ends):
            return f"no interleaving leaves what {name} leaves: {result}, but {ends}"
    return None


def main(kernel_type, runner_type):
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    runner = runner_type()
    tally, wrong = collections.Counter(kernels=0), 0
    number = 0
    while tally["kernels"] < count:
        number += 1
        generated = kernel_type(f"{seed} {number}")
        fault = judge(runner, generated, tally)
        if fault:
            wrong += 1
            print(f"kernel {number} of seed {seed}: {fault}\n{generated.text()}")
    print(json.dumps(dict(tally, wrong=wrong), sort_keys=True))
    return int(wrong > 0)


if __name__ == "__main__":
    kinds = {
        "": (RandomKernel, Runner),
        "sass": (RandomMachineKernel, MachineRunner),
        "gpu": (RandomMachineKernel, GpuRunner),
    }
    sys.exit(main(*kinds["".join(sys.argv[3:])]))
