"""Inside an environment, on the CPU: what each patched op and its original take, at real sizes and at their smallest.

Usage: python inside_patches.py REPEATS [WORD...]        one JSON line for each case (those whose text holds a word)
"""

import json
import sys

from measured_case import VERSION
from patch_calls import cases

from tfdeterminism.patches import PATCHES


def main():
    repeats, words = int(sys.argv[1]), sys.argv[2:]
    for case in cases():
        text = case.patch + " " + case.size
        if not PATCHES[case.patch].applies(VERSION) or not any(word in text for word in words or [""]):
            continue
        print(json.dumps(case.line(repeats)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
