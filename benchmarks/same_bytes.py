"""Do two devices show the same of the same cases, and leave the same bytes?

    python benchmarks/same_bytes.py ENVIRONMENT DEVICE DEVICE

Compared are the records in matrix/evidence of one source, case and solution.  Prints how many pairs there are of each
two observations, and of those that are equal on both devices how many have a result of the same bytes.  Promises
nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).resolve().parent.parent / "matrix" / "evidence"
Case = tuple[str, str, str]  # source, case, solution


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", metavar="ENVIRONMENT", help="such as torch2.11")
    parser.add_argument("devices", metavar="DEVICE", nargs=2, help="such as vgpu-sm80")
    options = parser.parse_args()
    first, second = (records(options.environment, device) for device in options.devices)
    pairs = Counter((observed(first[case]), observed(second[case])) for case in first.keys() & second.keys())
    for pair, count in pairs.most_common():
        print(f"{count:6,}  {' | '.join(pair)}")
    equal = [
        case for case in first.keys() & second.keys() if observed(first[case]) == observed(second[case]) == "equal"
    ]
    same = sum(bool(digests(first[case]) & digests(second[case])) for case in equal)
    print(f"same bytes: {same:,} of {len(equal):,} equal on both")
    return 0


def records(environment: str, device: str) -> dict[Case, list[dict[str, Any]]]:
    """Each machine's record of each case."""
    found = defaultdict(list)
    for line in (EVIDENCE / device / f"{environment}.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        found[record["source"], record["case"], record["solution"]].append(record)
    return found


def observed(of_case: list[dict[str, Any]]) -> str:
    """What all machines observed; `differs` if one of them saw that. A run that did not end counts if no other did."""
    found = {record["observation"] for record in of_case}
    found = found - {"crashed", "timed-out"} or found
    return "differs" if "differs" in found else " and ".join(sorted(found))


def digests(of_case: list[dict[str, Any]]) -> set[str]:
    return {digest for record in of_case for digest in record["digests"]}


if __name__ == "__main__":
    sys.exit(main())
