"""Differential fuzzing of the virtual GPU: python tests/vgpu/fuzz.py [--programs N] [--seed S] [--only K]

Random programs of PTX on the virtual GPU beside a reference interpreter in Python.  A disagreement is printed with its
seed, and without the lines that it does not need; the exit code is 1 where there was one.
"""

import argparse
import sys
import time

from fuzzing import exact_oracle, families
from fuzzing.programs import draw_program
from virtual_device import Device, build

BATCH = 200  # programs of a module


def run(device, numbers, seed):
    programs = [draw_program(seed, number, families.ALL) for number in numbers]
    return exact_oracle.disagreements(device, programs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="this program alone")
    parser.add_argument("--most", type=int, default=10, help="end after so many disagreements")
    chosen = parser.parse_args()
    numbers = range(chosen.programs) if chosen.only is None else range(chosen.only, chosen.only + 1)
    device, began, found = Device(build()), time.monotonic(), 0
    for first in range(0, len(numbers), BATCH):
        for one in run(device, numbers[first : first + BATCH], chosen.seed):
            print(exact_oracle.minimize(device, one), flush=True)
            found += 1
        if found >= chosen.most:
            break
    print(f"seed {chosen.seed}: {len(numbers)} programs, {found} disagreements, {time.monotonic() - began:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
