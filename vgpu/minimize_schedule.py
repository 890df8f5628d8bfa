"""Which two operations have to change places for a program's result to change.

    python vgpu/minimize_schedule.py [--schedule random:7] [--output-file FILE] -- PROGRAM [ARGUMENT ...]

The program runs under `serial` and under the schedule, and what it prints, or what it writes to FILE, is compared.  The
schedule is by default the first that shows a difference of `atomics:1` to `atomics:3`, in which a choice lets another
thread's atomic go before one at the same address, `lanes`, in which two lanes of an atomic change places, `exchange`,
the same for blocks and warps, too, and random ones.  Then choices of it are left out for as long as the result still
differs: launch by launch, then one by one (delta debugging, Zeller 2002).  What is left is printed as a schedule that
anyone can replay (VGPU_SCHEDULE), with the kernel, the line of its PTX, the address and the two threads that changed
places.  LD_LIBRARY_PATH is set to the device's build.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import build as builder

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from tfdet_common import virtual_gpu

Point = TypeVar("Point")
DEFAULT_SCHEDULES = [
    *(f"atomics:{seed}" for seed in range(1, 4)),
    *("lanes", "exchange"),
    *(f"random:{seed}" for seed in range(1, 5)),
]
Choice = tuple[int, int]  # a scheduling decision: number of the launch, number of the decision in it


def minimal_subset(points: Sequence[Point], differs: Callable[[Sequence[Point]], bool]) -> list[Point]:
    """Return a minimal subset of points that still differs; all points together must differ."""
    remaining, parts = list(points), 2
    while len(remaining) > 1:
        size = -(-len(remaining) // parts)
        chunks = [remaining[start : start + size] for start in range(0, len(remaining), size)]
        complements = [[point for other in chunks if other is not chunk for point in other] for chunk in chunks]
        if subset := next((chunk for chunk in chunks if differs(chunk)), None):
            remaining, parts = subset, 2
        elif len(chunks) > 2 and (subset := next((rest for rest in complements if differs(rest)), None)):
            remaining, parts = subset, max(parts - 1, 2)
        elif parts >= len(remaining):
            return remaining
        else:
            parts = min(2 * parts, len(remaining))
    return remaining


def restrict_schedule(schedule: str, choices: Iterable[Choice]) -> str:
    """Return the schedule restricted to these choices; consecutive choices become ranges."""
    ranges: list[list[int]] = []
    for launch, number in sorted(choices):
        if ranges and ranges[-1][0] == launch and ranges[-1][2] == number - 1:
            ranges[-1][2] = number
        else:
            ranges.append([launch, number, number])
    return schedule + "@" + ",".join(f"{launch}:{first}-{last}" for launch, first, last in ranges)


@dataclass(frozen=True)
class Operation:
    line: int  # of the PTX
    kind: str  # a: an atomic, s: a store
    thread: int  # number in the grid


@dataclass(frozen=True)
class Exchange:
    """Two operations at one address whose order differs from that of the serial schedule."""

    kernel: str
    block_threads: int
    space: str  # s: shared, g: global
    allocation: int  # number of the allocation; of shared memory, that of the block
    offset: int
    first: Operation  # in serial order
    second: Operation
    more: int  # number of operations between them that were reordered, too

    def __str__(self) -> str:
        location = f"byte {self.offset} of " + (
            f"block {self.allocation}'s shared memory" if self.space == "s" else f"allocation {self.allocation}"
        )
        more = f" (and {self.more} between them)" if self.more else ""
        operations = f"{self.describe(self.first)}, {self.describe(self.second)}"
        return f"{self.kernel}: {operations}: changed places{more} at {location}"

    def describe(self, operation: Operation) -> str:
        block, thread = divmod(operation.thread, self.block_threads)
        kind = "atomic" if operation.kind == "a" else "store"
        return f"the {kind} of line {operation.line} by thread {thread} of block {block}"


Trace = tuple[str, int, dict[tuple[str, int, int], list[Operation]]]


def read_trace(path: Path) -> Trace:
    """Return a launch's kernel, its threads per block, and the operations at each address in order."""
    operations: dict[tuple[str, int, int], list[Operation]] = {}
    with path.open(encoding="utf-8") as file:
        kernel, threads = next(file).split()
        for text in file:
            line, kind, memory, offset, thread = text.split()
            address = (memory[0], int(memory[1:]), int(offset))
            operations.setdefault(address, []).append(Operation(int(line), kind, int(thread)))
    return kernel, int(threads), operations


def find_exchanges(serial: Trace, other: Trace) -> list[Exchange]:
    """Return the first and the last of the reordered operations, for each address whose order differs.

    If one operation moved past several, the farthest one matters: without the last step the result does not differ.
    """
    exchanges = []
    for address, before in serial[2].items():
        after = other[2].get(address, [])
        differing = [k for k, (left, right) in enumerate(zip(before, after, strict=False)) if left != right]
        if not differing:
            continue
        low, high = differing[0], differing[-1]
        old_order, new_order = before[low : high + 1], after[low : high + 1]
        is_rotation = new_order in (old_order[1:] + old_order[:1], old_order[-1:] + old_order[:-1])
        more = 0 if is_rotation else len(old_order) - 2
        exchanges.append(Exchange(serial[0], serial[1], *address, old_order[0], old_order[-1], more))
    return exchanges


class Program:
    """The program that is run under different schedules."""

    def __init__(self, command: list[str], output_file: str | None, folder: Path) -> None:
        self.command, self.output_file, self.folder = command, output_file, folder
        self.library = str(builder.build(builder.cache()))
        self.runs = 0

    def result(self, schedule: str, **variables: str) -> bytes:
        self.runs += 1
        path = os.pathsep.join(filter(None, [self.library, os.environ.get("LD_LIBRARY_PATH")]))
        environment = {**os.environ, "LD_LIBRARY_PATH": path, "VGPU_SCHEDULE": schedule, **variables}
        process = subprocess.run(self.command, env=environment, stdout=subprocess.PIPE, check=False)
        if process.returncode:
            sys.exit(f"vgpu: the program ended with {process.returncode} under {schedule}")
        return Path(self.output_file).read_bytes() if self.output_file else process.stdout

    def choices(self, schedule: str) -> tuple[bytes, dict[int, int]]:
        """Return the program's result, and the number of choices of each launch."""
        report = self.folder / f"report-{self.runs}"
        result = self.result(schedule, VGPU_REPORT=str(report))
        launches = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        return result, {record["launch"]: record["choices"] for record in launches if "launch" in record}

    def trace(self, schedule: str, launch: int) -> Trace:
        path = self.folder / f"trace-{self.runs}"
        self.result(schedule, VGPU_MEMORY_TRACE=f"{launch}:{path}")
        return read_trace(path)


def minimize(program: Program, schedules: Iterable[str]) -> tuple[str, list[Choice]] | None:
    """Return the first schedule whose result differs, and its minimal choices; None if no schedule differs."""
    reference = program.result("serial")
    if program.result("serial") != reference:
        sys.exit("vgpu: the program differs under one and the same schedule: the device is not why")
    for schedule in schedules:
        result, choices = program.choices(schedule)
        if result != reference:
            break
    else:
        return None

    def differs(points: Iterable[Choice]) -> bool:
        return program.result(restrict_schedule(schedule, points)) != reference

    def choices_of(launches: Iterable[int]) -> list[Choice]:
        return [(launch, number) for launch in launches for number in range(choices[launch])]

    candidates = [launch for launch in choices if choices[launch]]
    launches = minimal_subset(candidates, lambda subset: differs(choices_of(subset)))
    # Later choices come first: a choice also delays what its thread does later, which may then exchange with more.
    return schedule, minimal_subset(choices_of(launches)[::-1], differs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedule")
    parser.add_argument("--output-file", metavar="FILE")
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    if arguments.schedule and not virtual_gpu.is_schedule(arguments.schedule):
        parser.error(f"no schedule is called {arguments.schedule!r}: {virtual_gpu.SCHEDULES}")
    with tempfile.TemporaryDirectory() as folder:
        program = Program(arguments.program, arguments.output_file, Path(folder))
        schedules = [arguments.schedule] if arguments.schedule else DEFAULT_SCHEDULES
        minimized = minimize(program, schedules)
        if minimized is None:
            print(f"the same result under serial, {', '.join(schedules)}")
            return 1
        choices = minimized[1]
        schedule = restrict_schedule(*minimized)
        print(f"VGPU_SCHEDULE={schedule}   ({len(choices)} choices, {program.runs} runs)")
        for launch in sorted({launch for launch, _ in choices}):
            pairs = find_exchanges(program.trace("serial", launch), program.trace(schedule, launch))
            for exchange in pairs[:10]:
                print(f"launch {launch}: {exchange}")
            if len(pairs) > 10:
                print(f"launch {launch}: and at {len(pairs) - 10} more addresses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
