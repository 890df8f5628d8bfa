"""Speed of the virtual GPU: PTX instructions a second on one core, kernel by kernel (promise: >= 300 million in serial
order), how many times serial's time a kernel of atomics takes when each may let others go first, and what an idle
device holds in memory (<= 100 MB).

Usage: python benchmarks/vgpu.py [--beside FOLDER] [--rounds N] [--check]
FOLDER holds another build's libcuda.so.1 to be measured in the same run, in turn with this one (promise: >= 3 x the
first sketch's speed in serial order, >= 2 x in random).  Of several rounds the fastest counts: others compute beside.
--check: what VGPU_CHECK=order costs instead (promise: <= 2 x the time of elementwise and reduction, <= 5 x of atomics;
2 GiB of the device's memory within 4 GiB).
"""

from __future__ import annotations

import argparse
import array
import ctypes
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve()
GIB = 1 << 30
KERNELS = {  # grid, block, elements
    "elementwise": (64, 256, 1 << 20),
    "atomics": (64, 256, 1 << 19),
    "reduction": (128, 256, 1 << 18),
    "lookback": (256, 128, 1 << 15),
    "divergent": (32, 128, 1 << 12),
}
VALUES = random.Random(0).choices([-1.5, 0.25, 0.75, 3.0], k=max(elements for _, _, elements in KERNELS.values()))
# The sketch reads other names.
SCHEDULES = {
    "serial": {"VGPU_SCHED": "serial"},
    "random:1": {"VGPU_SCHED": "random", "VGPU_SEED": "1"},
    "atomics:1": {"VGPU_SCHED": "serial"},
}


class Driver:
    """A build of the device in this process."""

    def __init__(self, library: str) -> None:
        self.cuda = ctypes.CDLL(library)
        self.cuda.vgpu_instructions.restype = ctypes.c_uint64
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0))
        self.module = ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), HERE.with_suffix(".ptx").read_bytes() + b"\0"))

    def check(self, result: int) -> None:
        if result:
            sys.exit(f"CUDA's error {result}")

    def memory(self, elements: int) -> ctypes.c_uint64:
        at = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4 * elements)))
        return at

    def launch(self, kernel: str) -> tuple[float, int]:
        """Seconds of CPU and instructions of a launch on fresh memory."""
        elements = KERNELS[kernel][2]
        values = array.array("f", VALUES[:elements])
        data, out = self.memory(elements), self.memory(elements)
        self.check(self.cuda.cuMemcpyHtoD_v2(data, values.tobytes(), ctypes.c_size_t(4 * elements)))
        took = self.launch_on(kernel, data, out, elements)
        self.check(self.cuda.cuMemFree_v2(data) or self.cuda.cuMemFree_v2(out))
        return took

    def launch_on(self, kernel: str, data: ctypes.c_uint64, out: ctypes.c_uint64, elements: int) -> tuple[float, int]:
        grid, block, _ = KERNELS[kernel]
        count, function = ctypes.c_uint32(elements), ctypes.c_void_p()
        self.check(self.cuda.cuMemsetD8_v2(out, ctypes.c_ubyte(0), ctypes.c_size_t(4 * elements)))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, kernel.encode()))
        given = (ctypes.c_void_p * 3)(*(ctypes.addressof(one) for one in (data, out, count)))
        before, started = self.cuda.vgpu_instructions(), time.process_time()
        self.check(self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, given, None))
        return time.process_time() - started, self.cuda.vgpu_instructions() - before


def megabytes() -> float:
    """Of this process, in memory of its own."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("RssAnon:")[1].split()[0]) / 1000


def whole_memory(library: str) -> float:
    """Megabytes of a process that writes two arrays of 1 GiB, all of the device's memory."""
    driver, elements = Driver(library), GIB // 4
    data, out = driver.memory(elements), driver.memory(elements)
    driver.check(driver.cuda.cuMemsetD8_v2(data, ctypes.c_ubyte(0), ctypes.c_size_t(GIB)))
    driver.launch_on("elementwise", data, out, elements)
    return megabytes()


def measured(library: str) -> dict[str, object]:
    before = megabytes()
    driver = Driver(library)
    idle = megabytes() - before
    for kernel in KERNELS:
        driver.launch(kernel)  # decoded, and its code in memory
    return {"idle": idle, **{kernel: driver.launch(kernel) for kernel in KERNELS}}


def measure(folder: str, schedule: str, what: str = "--measure", **more: str) -> dict[str, object]:
    """The same in a process of its own: a process has one device."""
    environment = {**os.environ, "VGPU_SCHEDULE": schedule, **SCHEDULES[schedule], **more}
    command = [sys.executable, str(HERE), what, str(Path(folder) / "libcuda.so.1")]
    return json.loads(subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout)


def fastest(rounds: list[dict[str, object]], kernel: str) -> list[float]:
    return min(one[kernel] for one in rounds)


def report(schedule: str, own: list[dict[str, object]], other: list[dict[str, object]]) -> None:
    for kernel in KERNELS:
        seconds, instructions = fastest(own, kernel)
        line = f"{schedule:9} {kernel:12} {instructions / seconds / 1e6:7.0f} M/s {1e3 * seconds:8.1f} ms"
        if other:
            line += f"   beside {1e3 * fastest(other, kernel)[0]:8.1f} ms: {fastest(other, kernel)[0] / seconds:5.1f} x"
        print(line, flush=True)


def report_check(folder: str, rounds: int) -> None:
    alone, checked = [], []
    for _ in range(rounds):
        alone.append(measure(folder, "serial"))
        checked.append(measure(folder, "serial", VGPU_CHECK="order"))
    for kernel in KERNELS:
        least, more = fastest(alone, kernel)[0], fastest(checked, kernel)[0]
        print(f"order     {kernel:12} {1e3 * more:8.1f} ms, {1e3 * least:8.1f} ms without: {more / least:5.1f} x")
    held = [measure(folder, "serial", "--whole", VGPU_CHECK=check, VGPU_MEMORY_MIB="2048") for check in ("", "order")]
    print(f"2 GiB of device memory: {held[0]:.0f} MB without, {held[1]:.0f} MB with the check")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--whole", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return print(json.dumps(measured(arguments.measure)))
    if arguments.whole:
        return print(json.dumps(whole_memory(arguments.whole)))
    command = [sys.executable, str(HERE.parents[1] / "vgpu" / "build.py")]
    folder = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if arguments.check:
        return report_check(folder, arguments.rounds)
    took = {}
    for schedule in SCHEDULES:
        own, other = [], []
        for _ in range(arguments.rounds):
            own.append(measure(folder, schedule))
            other += [measure(arguments.beside, schedule)] if arguments.beside else []
        report(schedule, own, other)
        took[schedule] = fastest(own, "atomics")[0]
    print(f"atomics:1 takes {took['atomics:1'] / took['serial']:.1f} x the time of serial for the kernel of atomics")
    print(f"idle: {max(one['idle'] for one in own):.1f} MB")


if __name__ == "__main__":
    main()
