"""Speed of the virtual GPU: PTX instructions per second on one core for each kernel (promise: >= 300 million in serial
order), the time of deferred atomics relative to serial order (promise: <= 5 x), without their old values (atomics) and
with them (lookback, histogram, chain), and the memory of an idle device (promise: <= 100 MB).

Usage: python benchmarks/vgpu.py [--beside FOLDER] [--rounds N] [--check | --machine-code CUBIN]
FOLDER has another build's libcuda.so.1, which is measured alternately in the same run (promise: >= 3 x the speed of the
first prototype in serial order, >= 2 x in random).  The fastest of several rounds counts, as the machine may be busy.
--check: measure the overhead of VGPU_CHECK=order instead (promise: <= 2 x the time of elementwise and reduction, <= 5 x
of atomics; 2 GiB of the device's memory within 4 GiB).
--machine-code: measure the same kernels as machine code in serial order, beside their PTX (promise: >= 2,000 million
instructions a second of elementwise, <= 1.5 x the time of PTX for each).  CUBIN is made by
`ptxas -arch sm_80 benchmarks/vgpu.ptx -o CUBIN`.
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
PTX = HERE.with_suffix(".ptx")
GIB = 1 << 30
KERNELS = {  # grid, block, elements
    "elementwise": (64, 256, 1 << 20),
    "atomics": (64, 256, 1 << 19),
    "reduction": (128, 256, 1 << 18),
    "lookback": (256, 128, 1 << 15),
    "histogram": (128, 256, 1 << 15),
    "chain": (32, 256, 1 << 13),
    "divergent": (32, 128, 1 << 12),
}
DEFERRING = ("atomics", "lookback", "histogram", "chain")
VALUES = random.Random(0).choices([-1.5, 0.25, 0.75, 3.0], k=max(elements for _, _, elements in KERNELS.values()))
# {VGPU_SCHEDULE: the variables by which the prototype selects the same schedule}.  serial: threads run one after the
# other; random:SEED: they take turns in a random order; atomics:SEED: as serial, but atomics are deferred and shuffled.
SCHEDULES = {
    "serial": {"VGPU_SCHED": "serial"},
    "random:1": {"VGPU_SCHED": "random", "VGPU_SEED": "1"},
    "atomics:1": {"VGPU_SCHED": "serial"},
}


class Driver:
    """A build of the virtual GPU, loaded into this process."""

    def __init__(self, library: str, module: Path = PTX) -> None:
        self.cuda = ctypes.CDLL(library)
        self.cuda.vgpu_instructions.restype = ctypes.c_uint64
        self.check(self.cuda.cuInit(0))
        self.check(self.cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0))
        self.module = ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), module.read_bytes() + b"\0"))

    def check(self, result: int) -> None:
        if result:
            sys.exit(f"CUDA's error {result}")

    def allocate(self, elements: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * elements)))
        return address

    def launch(self, kernel: str) -> tuple[float, int]:
        """Launch a kernel on new memory; return (CPU seconds, instructions)."""
        elements = KERNELS[kernel][2]
        values = array.array("f", VALUES[:elements])
        data, out = self.allocate(elements), self.allocate(elements)
        self.check(self.cuda.cuMemcpyHtoD_v2(data, values.tobytes(), ctypes.c_size_t(4 * elements)))
        figures = self.launch_on(kernel, data, out, elements)
        self.check(self.cuda.cuMemFree_v2(data) or self.cuda.cuMemFree_v2(out))
        return figures

    def launch_on(self, kernel: str, data: ctypes.c_uint64, out: ctypes.c_uint64, elements: int) -> tuple[float, int]:
        grid, block, _ = KERNELS[kernel]
        count, function = ctypes.c_uint32(elements), ctypes.c_void_p()
        self.check(self.cuda.cuMemsetD8_v2(out, ctypes.c_ubyte(0), ctypes.c_size_t(4 * elements)))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, kernel.encode()))
        arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in (data, out, count)))
        before, start = self.cuda.vgpu_instructions(), time.process_time()
        self.check(self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, arguments, None))
        return time.process_time() - start, self.cuda.vgpu_instructions() - before


def private_megabytes() -> float:
    """Return the megabytes of this process's private memory."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("RssAnon:")[1].split()[0]) / 1000


def full_memory_megabytes(library: str) -> float:
    """Return the megabytes of this process after writes to two arrays of 1 GiB, all of the device's memory."""
    driver, elements = Driver(library), GIB // 4
    data, out = driver.allocate(elements), driver.allocate(elements)
    driver.check(driver.cuda.cuMemsetD8_v2(data, ctypes.c_ubyte(0), ctypes.c_size_t(GIB)))
    driver.launch_on("elementwise", data, out, elements)
    return private_megabytes()


def measure_here(library: str, module: str) -> dict[str, object]:
    before = private_megabytes()
    driver = Driver(library, Path(module))
    idle = private_megabytes() - before
    for kernel in KERNELS:
        driver.launch(kernel)  # so that it is decoded before it is measured
    return {"idle": idle, **{kernel: driver.launch(kernel) for kernel in KERNELS}}


def measure(
    folder: str, schedule: str, option: str = "--measure", module: Path = PTX, **variables: str
) -> dict[str, object]:
    """Run `measure_here` in a new process, as a process has one device.  option: `--measure` or `--whole`."""
    environment = {**os.environ, "VGPU_SCHEDULE": schedule, **SCHEDULES[schedule], **variables}
    command = [sys.executable, str(HERE), option, str(Path(folder) / "libcuda.so.1"), "--module", str(module)]
    return json.loads(subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout)


def fastest(rounds: list[dict[str, object]], kernel: str) -> list[float]:
    return min(figures[kernel] for figures in rounds)


def report(schedule: str, own: list[dict[str, object]], compared: list[dict[str, object]]) -> None:
    for kernel in KERNELS:
        seconds, instructions = fastest(own, kernel)
        line = f"{schedule:9} {kernel:12} {instructions / seconds / 1e6:7.0f} M/s {1e3 * seconds:8.1f} ms"
        if compared:
            compared_seconds = fastest(compared, kernel)[0]
            line += f"   beside {1e3 * compared_seconds:8.1f} ms: {compared_seconds / seconds:5.1f} x"
        print(line, flush=True)


def report_check(folder: str, rounds: int) -> None:
    unchecked, checked = [], []
    for _ in range(rounds):
        unchecked.append(measure(folder, "serial"))
        checked.append(measure(folder, "serial", VGPU_CHECK="order"))
    for kernel in KERNELS:
        unchecked_seconds, checked_seconds = fastest(unchecked, kernel)[0], fastest(checked, kernel)[0]
        times = f"{1e3 * checked_seconds:8.1f} ms, {1e3 * unchecked_seconds:8.1f} ms without"
        print(f"order     {kernel:12} {times}: {checked_seconds / unchecked_seconds:5.1f} x")
    megabytes = [
        measure(folder, "serial", "--whole", VGPU_CHECK=check, VGPU_MEMORY_MIB="2048") for check in ("", "order")
    ]
    print(f"2 GiB of device memory: {megabytes[0]:.0f} MB without, {megabytes[1]:.0f} MB with the check")


def report_machine_code(folder: str, rounds: int, cubin: Path) -> None:
    ptx, machine_code = [], []
    for _ in range(rounds):
        ptx.append(measure(folder, "serial"))
        machine_code.append(measure(folder, "serial", module=cubin))
    for kernel in KERNELS:
        ptx_seconds, (seconds, instructions) = fastest(ptx, kernel)[0], fastest(machine_code, kernel)
        speed = f"{instructions / seconds / 1e6:7.0f} M/s {1e3 * seconds:8.1f} ms"
        print(f"machine code {kernel:12} {speed}, {1e3 * ptx_seconds:8.1f} ms as PTX: {seconds / ptx_seconds:5.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--machine-code", metavar="CUBIN", type=Path)
    parser.add_argument("--module", help=argparse.SUPPRESS)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--whole", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return print(json.dumps(measure_here(arguments.measure, arguments.module)))
    if arguments.whole:
        return print(json.dumps(full_memory_megabytes(arguments.whole)))
    command = [sys.executable, str(HERE.parents[1] / "vgpu" / "build.py")]
    folder = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if arguments.check:
        return report_check(folder, arguments.rounds)
    if arguments.machine_code:
        return report_machine_code(folder, arguments.rounds, arguments.machine_code)
    own: dict[str, list[dict[str, object]]] = {schedule: [] for schedule in SCHEDULES}
    compared: dict[str, list[dict[str, object]]] = {schedule: [] for schedule in SCHEDULES}
    for _ in range(arguments.rounds):  # in turns, as the machine's speed may change
        for schedule in SCHEDULES:
            own[schedule].append(measure(folder, schedule))
            compared[schedule] += [measure(arguments.beside, schedule)] if arguments.beside else []
    for schedule in SCHEDULES:
        report(schedule, own[schedule], compared[schedule])
    seconds = {schedule: {kernel: fastest(own[schedule], kernel)[0] for kernel in DEFERRING} for schedule in SCHEDULES}
    for kernel, serial_seconds in seconds["serial"].items():
        print(f"atomics:1 takes {seconds['atomics:1'][kernel] / serial_seconds:.1f} x the time of serial for {kernel}")
    print(f"idle: {max(figures['idle'] for figures in own['serial']):.1f} MB")


if __name__ == "__main__":
    main()
