"""Is what VGPU_CHECK=order proves true?  python tests/vgpu/order_kernels.py COUNT [SEED [sass|card]]

Small random kernels, whose interleavings are all walked through.  The virtual GPU runs each in several schedules, and
says whether it is proved.  Counted are kernels that leave one result (independent) and others (differs).
The exit code is 1 where one is proved and differs, or where the device leaves what no interleaving leaves.
sass: as machine code, which ptxas makes of them.
card: on the card whose library VGPU_LIBRARY names (libcuda.so.1). It proves nothing; a kernel runs 20 times, and leaves
what some interleaving leaves.
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
    endings,
)
from virtual_device import HEAD, Device, build

MOST_STATES = 10000
SCHEDULES = ("serial", "reverse", "random:1", "adversary:2")
ONE_WARP = [(1, 2, [0, 1]), (1, 3, [0, 1, 2])]
WARPS = [(1, 64, [0, 32]), (1, 64, [0, 1, 32]), (1, 96, [0, 32, 64])]
BLOCKS = [(2, 1, [0, 1]), (2, 2, [0, 1, 2]), (2, 2, [0, 1, 2, 3])]
NUMBERS = [1.0, 0.5, 0.1, 1e8, -1.0, 3.3, 0.0, 1e-39]  # that are added
ATOMICS = {
    "u32": ("add", "or", "and", "xor", "max", "min", "exch", "cas", "inc"),
    "s32": ("max", "min"),
    "f32": ("add",),
    "u64": ("add", "or", "and", "xor", "max", "min", "exch", "cas"),
    "f64": ("add",),
}
UPDATES = {"u32": ("add", "max", "min", "or", "xor", "twice"), "u64": ("add", "max"), "s32": ("max",), "f32": ("add",)}
BITWISE = ("or", "and", "xor", "exch", "cas")
START = """ld.param.u64 %global, [p0]; ld.param.u64 %out, [p1]; mov.u64 %shared, sh;
mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %a, %ntid.x; mad.lo.u32 %i, %i, %a, %t; shr.u32 %w, %i, 5;
"""
REGISTERS = ".reg .pred %p; .reg .b32 %t, %i, %a, %w, %x; .reg .b64 %global, %out, %shared, %d, %given, %x8, %y8;\n"


class Draft:
    """A random kernel: its text and, as `kernel`, the same for the interpreter."""

    shapes = (ONE_WARP, WARPS, WARPS, BLOCKS)
    barriers = ("block", "block", "warp", "some")

    def __init__(self, seed):
        self.random = choose = random.Random(seed)
        self.grid, self.block, self.threads = choose.choice(choose.choice(self.shapes))
        self.widths = []  # of the registers
        self.private = set()  # registers of loops, at which nobody else looks
        self.lines, self.labels = [], 0
        self.code = [[] for _ in self.threads]
        self.draw_habits()
        for number in range(choose.choice([1, 1, 2, 3])):
            if number:
                self.add_barrier(number)
            self.add_segment()
        initial = bytes(choose.choice([0, 0, 0, 1, 2]) if k % 4 == 0 else 0 for k in range(choose.choice([8, 16, 16])))
        kept = [k for k in range(len(self.widths)) if k not in self.private and choose.random() < 0.6]
        blocks = [one // self.block for one in self.threads]
        self.kernel = Kernel(self.code, self.threads, blocks, len(self.widths), kept, initial)

    def draw_habits(self):
        """What this kernel's accesses have in common."""
        choose = self.random
        self.offsets = choose.choice([[0], [0], [0, 4], [0, 4, 8, 12]])
        self.spaces = choose.choice([["global"], ["global"], ["global", "shared"], ["shared"]])
        self.types = choose.choice(
            [["u32"], ["u32", "u32", "s32", "f32"], ["f32"], ["u64", "f64"], ["u32", "f32", "u64", "f64"]]
        )
        kinds = ["ld", "st", "st", "byte", "atomic", "atomic", "atomic", "loop", "loop"]
        self.kinds = choose.sample(kinds, choose.choice([1, 1, 2, 3, 4, 6]))
        self.atomics = {
            one: choose.sample(ATOMICS[one], min(choose.choice([1, 2, 4]), len(ATOMICS[one]))) for one in ATOMICS
        }
        self.updates = {one: choose.sample(UPDATES[one], 1) for one in UPDATES}
        self.uses_old = choose.choice([0.0, 0.0, 0.2, 0.7])
        self.constants = choose.choice([1, 2, 4])
        self.same_code = choose.random() < 0.4

    def add_segment(self):
        most = 3 if len(self.threads) == 2 else 2
        if self.same_code:
            self.add_accesses(range(len(self.threads)), self.random.randint(1, most))
            return
        for one in range(len(self.threads)):
            self.add_accesses([one], self.random.randint(0, most))

    def add_accesses(self, group, count):
        self.mine = []  # registers that hold something
        text = ""
        for _ in range(count):
            for access in self.accesses():
                text += access_text(access, self.widths)
                for one in group:
                    self.code[one].append(access)
        self.add_only("%i", [self.threads[one] for one in group], text)

    def add_only(self, register, numbers, text):
        """For the threads, or the warps, of these numbers."""
        first, *others = numbers
        self.labels += 1
        tests = f"setp.ne.u32 %p, {register}, {first}; " + "".join(
            f"setp.ne.and.u32 %p, {register}, {one}, %p; " for one in others
        )
        self.lines.append(f"{tests}@%p bra L{self.labels};\n{text}L{self.labels}:\n")

    def new_register(self, type):
        self.widths.append(max(4, WIDTH[type]))
        return len(self.widths) - 1

    def accesses(self):
        """One access, or the two of a compare-and-swap loop."""
        choose = self.random
        kind, type, space = choose.choice(self.kinds), choose.choice(self.types), choose.choice(self.spaces)
        what, update, target = kind, "", None
        if kind == "atomic":
            what = choose.choice(self.atomics[type])
        elif kind == "loop":
            type = type if type in UPDATES else "u32"
            what, update = "swap", choose.choice(self.updates[type])
        else:
            type = "u8" if kind == "byte" else "u64" if WIDTH[type] == 8 else "u32"
            what = choose.choice(["ld", "st", "st"]) if kind == "byte" else kind
        guard = (choose.choice(self.mine), choose.randrange(3)) if self.mine and choose.random() < 0.15 else None
        operand = self.operand(type)
        if what in ("ld", "swap") or (kind == "atomic" and choose.random() < self.uses_old):
            target = self.new_register(type)
            if what != "swap" or choose.random() < self.uses_old:
                self.mine.append(target)
            else:
                self.private.add(target)
        where = self.where(WIDTH[type])
        made = Access(what, type, space, *where, operand, choose.randrange(3), update, target, guard)
        if what != "swap":
            return [made]
        return [made._replace(what="guess", guard=None), made._replace(guard=None)]

    def where(self, width):
        """An offset, and whether the next element is taken by some."""
        choose = self.random
        offset = choose.choice(self.offsets)
        offset = offset + choose.randrange(4) if width == 1 else offset // width * width
        fits = offset + 2 * width <= min(GLOBAL, SHARED)
        return offset, self.same_code and fits and choose.random() < 0.3

    def operand(self, type):
        choose = self.random
        if type in ("f32", "f64"):
            return Operand("constant", as_bits(choose.choice(NUMBERS), type))
        if self.mine and choose.random() < 0.3:
            return Operand("register", choose.choice(self.mine))
        if self.same_code and choose.random() < 0.4:
            return Operand("thread", choose.choice([1, 3]))
        return Operand("constant", choose.randrange(self.constants))

    def add_barrier(self, number):
        """Of each block or warp; of some lanes or warps; or one where one warp arrives and another one waits."""
        choose, everyone = self.random, range(len(self.threads))
        kind = choose.choice(self.barriers)
        if kind == "some" and self.grid == 1:
            self.add_partial_barrier(number, sorted(choose.sample(everyone, 2)))
            return
        size = self.block if kind == "block" else min(32, self.block)
        for one in everyone:
            group = tuple(k for k in everyone if self.threads[k] // size == self.threads[one] // size)
            self.code[one].append(Barrier(number, group, True))
        self.lines.append("bar.sync 0;\n" if kind == "block" else "bar.warp.sync -1;\n")

    def add_partial_barrier(self, number, pair):
        threads = [self.threads[one] for one in pair]
        warps = [one // 32 for one in threads]
        group = tuple(pair)
        if warps[0] != warps[1]:
            group = tuple(k for k, one in enumerate(self.threads) if one // 32 in warps)
        arrives = warps[0] != warps[1] and self.random.random() < 0.5
        if warps[0] == warps[1]:
            self.add_only("%i", threads, f"bar.warp.sync {sum(1 << one % 32 for one in threads)};\n")
        elif arrives:
            self.add_only("%w", warps[:1], f"bar.arrive {number}, 64;\n")
            self.add_only("%w", warps[1:], f"bar.sync {number}, 64;\n")
        else:
            self.add_only("%w", warps, f"bar.sync {number}, 64;\n")
        for one in group:
            waits = not arrives or self.threads[one] // 32 == warps[1]
            self.code[one].append(Barrier(number, group, waits))

    def text(self):
        sizes = enumerate(8 * width for width in self.widths)
        declared = "".join(f".reg .b{size} %v{k}, %m{k}, %n{k}; .reg .pred %q{k};\n" for k, size in sizes)
        body = declared + START + "".join(self.lines) + "".join(map(self.written_out, self.kernel.kept))
        parameters = ".param .b64 p0, .param .b64 p1"
        variables = f".shared .align 8 .b8 sh[{SHARED}];\n"
        return f"{HEAD}.visible .entry k({parameters}) {{\n{variables}{REGISTERS}{body}ret;\n}}\n"

    def written_out(self, register):
        count, type = len(self.widths), f"b{8 * self.widths[register]}"
        at = f"mad.wide.u32 %d, %i, {8 * count}, %out;"
        return f"{at} st.global.{type} [%d+{8 * register}], %v{register};\n"


class MachineDraft(Draft):
    """One whose machine code does what its text says.

    Accesses are volatile, or ptxas would leave some out.  Registers begin with a zero, as the interpreter's do.  No two
    threads are of one warp: lanes that are together run in lockstep, which the interpreter does not know.
    """

    shapes = (((1, 64, [0, 32]), (1, 96, [0, 32, 64])), ((2, 1, [0, 1]), (3, 1, [0, 1, 2])))
    barriers = ("block", "block", "warp")  # of some threads: not decoded

    def text(self):
        zeros = "".join(f"mov.b{8 * width} %v{k}, 0; " for k, width in enumerate(self.widths))
        text = super().text().replace(START, START + zeros + "\n")
        text = re.sub(r"\b(ld|st)\.(global|shared)\.", r"\1.volatile.\2.", text)
        return text.replace("sm_90", "sm_80").replace("8.6", "8.0")


def access_text(access, widths):
    """The statements of one access."""
    element = WIDTH[access.type]
    text, at = "", f"[%{access.space}+{access.offset}]"
    if access.by_thread:
        text, at = f"and.b32 %a, %i, 1; mad.wide.u32 %d, %a, {element}, %{access.space};\n", f"[%d+{access.offset}]"
    word, given = f"b{8 * element}", "%x8" if element == 8 else "%x"
    text += operand_text(access.operand, widths) + (
        "mov.b64 %x8, %given;\n" if element == 8 else "cvt.u32.u64 %x, %given;\n"
    )
    only = ""
    if access.guard:
        register, number = access.guard
        text, only = text + f"setp.eq.u{8 * widths[register]} %p, %v{register}, {number};\n", "@%p "
    if access.what in ("ld", "guess"):
        return text + f"{only}ld.{access.space}.{word if element > 1 else 'u8'} %v{access.target}, {at};\n"
    if access.what == "st":
        return text + f"{only}st.{access.space}.{word} {at}, {given};\n"
    if access.what == "swap":
        return text + loop_text(access, at, word, given)
    type = word if access.what in BITWISE else access.type
    name = f"{access.space}.{access.what}.{type}"
    if access.target is None and access.what not in ("exch", "cas"):
        return text + f"{only}red.{name} {at}, {given};\n"
    desired = f", {access.desired}" if access.what == "cas" else ""
    result = "_" if access.target is None else f"%v{access.target}"
    return text + f"{only}atom.{name} {result}, {at}, {given}{desired};\n"


def operand_text(operand, widths):
    """%given, of 64 bits."""
    if operand.kind == "constant":
        return f"mov.u64 %given, {operand.number}; "
    if operand.kind == "thread":
        return f"and.b32 %x, %i, {operand.number}; cvt.u64.u32 %given, %x; "
    width = 8 * widths[operand.number]
    return f"cvt.u64.u{width} %given, %v{operand.number}; "


def loop_text(access, at, word, given):
    """Each loop has registers of its own, so that it is known as an update.  `twice` is none."""
    k = access.target
    name = "add" if access.update == "twice" else access.update
    made = f"{name}.{word if name in BITWISE else access.type} %n{k}, %m{k}, {given};"
    if access.update == "twice":
        made += f" add.{access.type} %n{k}, %n{k}, %m{k};"
    swap = f"atom.{access.space}.cas.{word} %v{k}, {at}, %m{k}, %n{k}; setp.ne.u{word[1:]} %q{k}, %v{k}, %m{k};"
    return f"AGAIN{k}: mov.{word} %m{k}, %v{k}; {made} {swap} @%q{k} bra AGAIN{k};\n"


class Runner:
    """Runs kernels on the device and reads its verdicts."""

    def __init__(self):
        self.report = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 - as long as the process
        os.environ.update(VGPU_CHECK="order", VGPU_REPORT=self.report.name, VGPU_MAX_INSTRUCTIONS="10000000")
        self.device = Device(build())

    def image(self, draft):
        return draft.text()

    def run(self, draft):
        result, module = self.device.load(self.image(draft))
        result, function = self.device.function(module) if result == 0 else (result, None)
        assert result == 0, f"CUDA's error {result} for {draft.text()}"
        made = self.launches(draft, function)
        self.device.cuda.cuModuleUnload(module)
        return made

    def launches(self, draft, function):
        """For each schedule: its name, what the kernel left, and whether the launch was proved."""
        made = []
        for schedule in SCHEDULES:
            assert self.device.cuda.vgpu_set_schedule(schedule.encode()) == 0
            made.append(self.launch(draft, function))
        verdicts = [line["order"]["proved"] for line in map(json.loads, self.report) if "kernel" in line]
        return list(zip(SCHEDULES, made, verdicts, strict=True))

    def launch(self, draft, function):
        cuda, kernel = self.device.cuda, draft.kernel
        size = 8 * draft.grid * draft.block * kernel.registers
        memory, out = self.device.allocate(GLOBAL), self.device.allocate(size)
        cuda.cuMemcpyHtoD_v2(memory, kernel.initial, ctypes.c_size_t(len(kernel.initial)))
        cuda.cuMemsetD8_v2(out, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        given = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(out))
        result = cuda.cuLaunchKernel(function, draft.grid, 1, 1, draft.block, 1, 1, 0, None, given, None)
        assert result == 0, f"CUDA's error {result} for {draft.text()}"
        left, words = ctypes.create_string_buffer(GLOBAL), (ctypes.c_uint64 * max(size // 8, 1))()
        cuda.cuMemcpyDtoH_v2(left, memory, ctypes.c_size_t(GLOBAL))
        cuda.cuMemcpyDtoH_v2(words, out, ctypes.c_size_t(size))
        cuda.cuMemFree_v2(memory), cuda.cuMemFree_v2(out)
        return left.raw, tuple(tuple(words[one * kernel.registers + k] for k in kernel.kept) for one in kernel.threads)


class MachineRunner(Runner):
    def __init__(self):
        os.environ.update(VGPU_CODE="sass", VGPU_COMPUTE_CAPABILITY="80")
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    def image(self, draft):
        text, code = (Path(self.folder.name, name) for name in ("k.ptx", "k.cubin"))
        text.write_text(draft.text(), "utf-8")
        subprocess.run(["ptxas", "-arch=sm_80", str(text), "-o", str(code)], check=True)
        return code.read_bytes()


class CardRunner(Runner):
    def __init__(self):
        self.device = Device(build())

    def launches(self, draft, function):
        return [(f"run {k}", self.launch(draft, function), False) for k in range(20)]


def is_among(result, ends):
    memory, kept = result
    return result in ends or any(
        kept == own and all(a in (None, b) for a, b in zip(whole, memory, strict=True)) for whole, own in ends
    )


def judge(runner, draft, tally):
    """Counts the kernel; what is wrong with it, or None."""
    try:
        ends = endings(draft.kernel, MOST_STATES)
    except Undefined:
        ends = set()
    except TooManyStates:
        tally["left out"] += 1
        return None
    made = runner.run(draft)
    independent, proved = len(ends) == 1, made[0][2]
    tally["kernels"] += 1
    tally[f"{'' if proved else 'not '}proved, {'independent' if independent else 'differs'}"] += 1
    if len({result for _, result, _ in made}) > 1:
        tally["seen to differ"] += 1
    if not independent and any(verdict for _, _, verdict in made):
        return f"proved, and leaves {len(ends) or 'undefined'} results"
    for name, result, _ in made:
        if ends and not is_among(result, ends):
            return f"no interleaving leaves what {name} leaves: {result}, but {ends}"
    return None


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    make = MachineDraft if sys.argv[3:] in (["sass"], ["card"]) else Draft
    runner = {"sass": MachineRunner, "card": CardRunner}.get("".join(sys.argv[3:]), Runner)()
    tally, wrong = collections.Counter(kernels=0), 0
    number = 0
    while tally["kernels"] < count:
        number += 1
        draft = make(f"{seed} {number}")
        found = judge(runner, draft, tally)
        if found:
            wrong += 1
            print(f"kernel {number} of seed {seed}: {found}\n{draft.text()}")
    print(json.dumps(dict(tally, wrong=wrong), sort_keys=True))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
