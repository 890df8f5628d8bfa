"""A test of the proofs of VGPU_CHECK=order for whole warps: python tests/vgpu/order_lines.py COUNT [SEED]

The check treats an access of a warp to consecutive words as one access to a line.  The command runs random kernels of
whole warps, and the same kernels with the words of each line in opposite order, which are treated word by word.  The
exit code is 1 if the verdicts differ.
"""

import collections
import ctypes
import json
import os
import random
import sys
import tempfile

from virtual_device import HEAD, Device, build

LINES, IDLE_BLOCKS = 4, 20
BYTES = 128 * LINES
SCHEDULES = ("serial", "reverse", "random:1")
ORDERS = {"lines": "mov.u32 %slot, %lane;", "words": "sub.u32 %slot, 31, %lane;"}
MASKS = {"all": "", "half": "setp.lt.u32 %p1, %slot, 16;", "even": "and.b32 %y, %slot, 1; setp.eq.u32 %p1, %y, 0;"}
START = """ld.param.u64 %global, [p0]; ld.param.u64 %out, [p1]; mov.u64 %shared, sh; mov.u32 %t, %tid.x;
mov.u32 %b, %ctaid.x; and.b32 %lane, %t, 31; shr.u32 %w, %t, 5; mov.u32 %sum, 0; mov.u32 %blocks, BLOCKS;
setp.ge.u32 %p, %b, %blocks; @%p exit;
"""
REGISTERS = """.reg .pred %p, %p1; .reg .b32 %t, %b, %w, %lane, %slot, %blocks, %sum, %x<4>, %y;
.reg .b64 %global, %out, %shared, %d;
"""


class RandomKernel:
    """A random kernel; `text` has an order of words as an argument."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.blocks, self.warps = rng.choice([1, 1, 2]), rng.choice([2, 3])
        # With idle blocks a launch has over 1024 threads, too many for the check to try the orders of accesses.
        self.grid = self.blocks + rng.choice([0, IDLE_BLOCKS])
        self.lines = rng.sample(range(LINES), rng.choice([1, 2]))
        self.spaces = rng.choice([["global"], ["shared"], ["global", "shared"]])
        self.initial = rng.choice([0, 0, 1])
        parts = [self.segment() for _ in range(rng.choice([1, 2, 3]))]
        self.body = "bar.sync 0;\n".join(parts)

    def segment(self):
        """Return the accesses between two barriers."""
        rng = self.rng
        if rng.random() < 0.4:
            return self.accesses()
        parts = []
        for warp in range(self.warps):
            label = f"W{rng.getrandbits(40)}"
            parts.append(f"setp.ne.u32 %p, %w, {warp}; @%p bra {label};\n{self.accesses()}{label}:\n")
        return "".join(parts)

    def accesses(self):
        """Return the accesses of a warp."""
        return "".join(self.access() for _ in range(self.rng.choice([0, 1, 1, 2])))

    def access(self):
        """Return a load or a store of a warp."""
        rng = self.rng
        space, width, mask = rng.choice(self.spaces), rng.choice([1, 1, 1, 2, 4]), rng.choice(["all"] * 4 + [*MASKS])
        line = 0 if width > 1 else rng.choice(self.lines)
        vector = f".v{width}" if width > 1 else ""
        registers = [f"%x{k}" for k in range(width)]
        operand = f"{{{', '.join(registers)}}}" if width > 1 else registers[0]
        guard = "" if mask == "all" else "@%p1 "
        text = f"{MASKS[mask]} mad.wide.u32 %d, %slot, {4 * width}, %{space};\n"
        if rng.random() < 0.5:
            loads = f"{guard}ld.{space}{vector}.u32 {operand}, [%d+{128 * line}];\n"
            return text + loads + "".join(f"{guard}xor.b32 %sum, %sum, {register};\n" for register in registers)
        value = rng.choice(
            ["mov.u32 %y, 0;", "mov.u32 %y, 1;", "and.b32 %y, %slot, 1;", "mov.u32 %y, %w;", "mov.u32 %y, %sum;"]
        )
        values = value + "".join(f"mov.u32 {register}, %y; " for register in registers)
        return f"{text}{values}\n{guard}st.{space}{vector}.u32 [%d+{128 * line}], {operand};\n"

    def text(self, order):
        """Return the PTX of the kernel for an order of words."""
        # 96: words of a block, of up to 3 warps
        own_word = "mad.lo.u32 %y, %b, 96, %slot; mad.lo.u32 %y, %w, 32, %y; mad.wide.u32 %d, %y, 4, %out;"
        fill = "".join(
            f"mad.wide.u32 %d, %lane, 4, %shared; st.shared.u32 [%d+{128 * line}], {self.initial};\n"
            for line in range(LINES)
        )
        return f"""{HEAD}.visible .entry k(.param .b64 p0, .param .b64 p1) {{
.shared .align 128 .b8 sh[{BYTES}];
{REGISTERS}{START.replace("BLOCKS", str(self.blocks))}{ORDERS[order]}
setp.ne.u32 %p, %w, 0; @%p bra FILLED;
{fill}FILLED: bar.sync 0;
{self.body}{own_word} st.global.u32 [%d], %sum; ret;
}}
"""


class Runner:
    """A runner of kernels on the device, which reads the device's verdicts."""

    def __init__(self):
        self.report = tempfile.NamedTemporaryFile("r")  # noqa: SIM115 - as long as the process
        os.environ.update(VGPU_CHECK="order", VGPU_REPORT=self.report.name)
        self.device = Device(build())

    def verdict(self, generated, order, schedule):
        """Run a kernel; return (whether it was proved, its reasons)."""
        cuda = self.device.cuda
        assert cuda.vgpu_set_schedule(schedule.encode()) == 0
        result, module = self.device.load(generated.text(order))
        result, function = self.device.function(module) if result == 0 else (result, None)
        assert result == 0, f"CUDA's error {result} for {generated.text(order)}"
        memory, out = self.device.allocate(BYTES), self.device.allocate(4 * 96 * 2)
        cuda.cuMemsetD32_v2(memory, generated.initial, ctypes.c_size_t(BYTES // 4))
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(out))
        result = cuda.cuLaunchKernel(
            function, generated.grid, 1, 1, 32 * generated.warps, 1, 1, 0, None, arguments, None
        )
        assert result == 0, f"CUDA's error {result} for {generated.text(order)}"
        cuda.cuMemFree_v2(memory), cuda.cuMemFree_v2(out), cuda.cuModuleUnload(module)
        (launch,) = (line for line in map(json.loads, self.report) if "kernel" in line)
        return launch["order"]["proved"], {reason["reason"] for reason in launch["order"]["reasons"]}


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    runner, tally = Runner(), collections.Counter(kernels=0, unlike=0)
    for number in range(count):
        generated = RandomKernel(f"{seed} {number}")
        schedule = generated.rng.choice(SCHEDULES)
        verdicts = {order: runner.verdict(generated, order, schedule) for order in ORDERS}
        tally["kernels"] += 1
        tally["proved"] += verdicts["words"][0]
        if verdicts["lines"] != verdicts["words"]:
            tally["unlike"] += 1
            print(f"kernel {number} of seed {seed}, {schedule}: {verdicts}\n{generated.text('lines')}")
    print(json.dumps(tally, sort_keys=True))
    return int(tally["unlike"] > 0)


if __name__ == "__main__":
    sys.exit(main())
