"""The share of cells on the virtual GPU that are proved, of those that never differed, by environment and for all.

Promise: >= 90 % of all.  Usage: python benchmarks/proofs.py
"""

from __future__ import annotations

import collections
import json
import subprocess

PROVED = "schedule-independent"
NEVER_DIFFERED = (PROVED, "deterministic", "not shown to differ")


def main() -> None:
    output = subprocess.run(["tfdet", "status", "--json"], check=True, capture_output=True, text=True).stdout
    verdicts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for cell in json.loads(output)["cells"]:
        if cell["device"].startswith("vgpu-") and cell["verdict"] in NEVER_DIFFERED:
            verdicts[cell["environment"]][cell["verdict"]] += 1
    verdicts["all"] = sum(verdicts.values(), collections.Counter())
    for environment, counts in verdicts.items():
        print(
            f"{environment:12} {counts[PROVED]:5} of {counts.total():5} ({100 * counts[PROVED] / counts.total():.1f} %)"
        )


if __name__ == "__main__":
    main()
