"""Compare the observations and the result bytes of two devices on the same cases.

    python benchmarks/same_bytes.py ENVIRONMENT DEVICE DEVICE

Records in matrix/evidence of the same source, case and solution are compared.  Prints the number of pairs for each two
observations, and how many of the pairs that are equal on both devices have a result with the same bytes.  There is no
promise.
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
    pairs = Counter(
        (combined_observation(first[case]), combined_observation(second[case])) for case in first.keys() & second.keys()
    )
    for pair, count in pairs.most_common():
        print(f"{count:6,}  {' | '.join(pair)}")
    equal = [
        case
        for case in first.keys() & second.keys()
        if combined_observation(first[case]) == combined_observation(second[case]) == "equal"
    ]
    same_bytes = sum(bool(digests(first[case]) & digests(second[case])) for case in equal)
    print(f"same bytes: {same_bytes:,} of {len(equal):,} equal on both")
    return 0


def records(environment: str, device: str) -> dict[Case, list[dict[str, Any]]]:
    """Return the records of each case, one for each machine."""
    by_case = defaultdict(list)
    for line in (EVIDENCE / device / f"{environment}.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        by_case[record["source"], record["case"], record["solution"]].append(record)
    return by_case


def combined_observation(case_records: list[dict[str, Any]]) -> str:
    """Return the observations of all machines; only `differs` if one has it. Unfinished runs count if all are so."""
    observations = {record["observation"] for record in case_records}
    observations = observations - {"crashed", "timed-out"} or observations
    return "differs" if "differs" in observations else " and ".join(sorted(observations))


def digests(case_records: list[dict[str, Any]]) -> set[str]:
    return {digest for record in case_records for digest in record["digests"]}


if __name__ == "__main__":
    sys.exit(main())
