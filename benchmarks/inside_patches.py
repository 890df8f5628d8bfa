"""Measure each replaced op and its original on the CPU, at real and at minimal sizes; runs inside of an environment.

Usage: python inside_patches.py REPEATS [WORD...]

Prints a JSON line for each case whose patch or size contains a WORD.
"""

import json
import sys

from measured_case import VERSION
from patch_calls import cases

from tfdeterminism.patches import PATCHES


def main():
    repeats, filters = int(sys.argv[1]), sys.argv[2:]
    for case in cases():
        text = case.patch + " " + case.size
        if not PATCHES[case.patch].applies(VERSION) or not any(substring in text for substring in filters or [""]):
            continue
        print(json.dumps(case.line(repeats)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
