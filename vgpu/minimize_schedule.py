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
TRIED = [*(f"atomics:{seed}" for seed in range(1, 4)), "lanes", "exchange", *(f"random:{seed}" for seed in range(1, 5))]
Choice = tuple[int, int]  # the launch, the number of the choice


def minimal(points: Sequence[Point], differs: Callable[[Sequence[Point]], bool]) -> list[Point]:
    """Points with which it still differs, and without any one of which it does not.  With all it differs."""
    left, parts = list(points), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        chunks = [left[at : at + size] for at in range(0, len(left), size)]
        rests = [[one for other in chunks if other is not chunk for one in other] for chunk in chunks]
        if found := next((one for one in chunks if differs(one)), None):
            left, parts = found, 2
        elif len(chunks) > 2 and (found := next((one for one in rests if differs(one)), None)):
            left, parts = found, max(parts - 1, 2)
        elif parts >= len(left):
            return left
        else:
            parts = min(2 * parts, len(left))
    return left


def kept(schedule: str, choices: Iterable[Choice]) -> str:
    """The schedule with these choices alone, neighbours written as one."""
    ranges: list[list[int]] = []
    for launch, number in sorted(choices):
        if ranges and ranges[-1][0] == launch and ranges[-1][2] == number - 1:
            ranges[-1][2] = number
        else:
            ranges.append([launch, number, number])
    return schedule + "@" + ",".join(f"{launch}:{first}-{last}" for launch, first, last in ranges)


@dataclass(frozen=True)
class Operation:
    line: int
    kind: str  # a: an atomic, s: a store
    thread: int


@dataclass(frozen=True)
class Exchange:
    """Two operations at one address that came in the other order."""

    kernel: str
    block_threads: int
    space: str
    allocation: int
    offset: int
    first: Operation  # in serial order
    second: Operation
    more: int  # of those between them that did not only make room

    def __str__(self) -> str:
        where = f"byte {self.offset} of " + (
            f"block {self.allocation}'s shared memory" if self.space == "s" else f"allocation {self.allocation}"
        )
        more = f" (and {self.more} between them)" if self.more else ""
        return f"{self.kernel}: {self.place(self.first)}, {self.place(self.second)}: changed places{more} at {where}"

    def place(self, one: Operation) -> str:
        block, thread = divmod(one.thread, self.block_threads)
        kind = "atomic" if one.kind == "a" else "store"
        return f"the {kind} of line {one.line} by thread {thread} of block {block}"


Trace = tuple[str, int, dict[tuple[str, int, int], list[Operation]]]


def read_trace(path: Path) -> Trace:
    """A launch's kernel, its threads a block, and the operations at each address in their order."""
    places: dict[tuple[str, int, int], list[Operation]] = {}
    with path.open(encoding="utf-8") as file:
        kernel, threads = next(file).split()
        for text in file:
            line, kind, where, offset, thread = text.split()
            place = (where[0], int(where[1:]), int(offset))
            places.setdefault(place, []).append(Operation(int(line), kind, int(thread)))
    return kernel, int(threads), places


def exchanges(serial: Trace, other: Trace) -> list[Exchange]:
    """At each address with another order the first and the last of the operations that changed places.

    Where one moved past several, it is the farthest that matters: without the last step the result does not differ.
    """
    found = []
    for place, before in serial[2].items():
        after = other[2].get(place, [])
        differing = [k for k, (one, two) in enumerate(zip(before, after, strict=False)) if one != two]
        if not differing:
            continue
        low, high = differing[0], differing[-1]
        was, now = before[low : high + 1], after[low : high + 1]
        moved = now in (was[1:] + was[:1], was[-1:] + was[:-1])
        more = 0 if moved else len(was) - 2
        found.append(Exchange(serial[0], serial[1], *place, was[0], was[-1], more))
    return found


class Program:
    """What is run, again and again."""

    def __init__(self, command: list[str], output_file: str | None, folder: Path) -> None:
        self.command, self.output_file, self.folder = command, output_file, folder
        self.library = str(builder.build(builder.cache()))
        self.runs = 0

    def result(self, schedule: str, **variables: str) -> bytes:
        self.runs += 1
        path = os.pathsep.join(filter(None, [self.library, os.environ.get("LD_LIBRARY_PATH")]))
        environment = {**os.environ, "LD_LIBRARY_PATH": path, "VGPU_SCHEDULE": schedule, **variables}
        done = subprocess.run(self.command, env=environment, stdout=subprocess.PIPE, check=False)
        if done.returncode:
            sys.exit(f"vgpu: the program ended with {done.returncode} under {schedule}")
        return Path(self.output_file).read_bytes() if self.output_file else done.stdout

    def choices(self, schedule: str) -> tuple[bytes, dict[int, int]]:
        """Its result, and how many choices each launch has."""
        report = self.folder / f"report-{self.runs}"
        result = self.result(schedule, VGPU_REPORT=str(report))
        launches = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
        return result, {one["launch"]: one["choices"] for one in launches if "launch" in one}

    def trace(self, schedule: str, launch: int) -> Trace:
        path = self.folder / f"trace-{self.runs}"
        self.result(schedule, VGPU_MEMORY_TRACE=f"{launch}:{path}")
        return read_trace(path)


def minimize(program: Program, schedules: Iterable[str]) -> tuple[str, list[Choice]] | None:
    """The first schedule that differs and the choices of it that are left; None: none does."""
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
        return program.result(kept(schedule, points)) != reference

    def of(launches: Iterable[int]) -> list[Choice]:
        return [(launch, number) for launch in launches for number in range(choices[launch])]

    launches = minimal([one for one in choices if choices[one]], lambda some: differs(of(some)))
    # The last ones first: what a thread does after a choice comes later, too, and may change places with more.
    return schedule, minimal(of(launches)[::-1], differs)


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
        schedules = [arguments.schedule] if arguments.schedule else TRIED
        found = minimize(program, schedules)
        if found is None:
            print(f"the same result under serial, {', '.join(schedules)}")
            return 1
        left = found[1]
        schedule = kept(*found)
        print(f"VGPU_SCHEDULE={schedule}   ({len(left)} choices, {program.runs} runs)")
        for launch in sorted({launch for launch, _ in left}):
            pairs = exchanges(program.trace("serial", launch), program.trace(schedule, launch))
            for one in pairs[:10]:
                print(f"launch {launch}: {one}")
            if len(pairs) > 10:
                print(f"launch {launch}: and at {len(pairs) - 10} more addresses")
    return 0


if __name__ == "__main__":
    sys.exit(main())
