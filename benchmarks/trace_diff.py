"""Time and memory of `trace diff` on two traces of 10 million records each.

    python benchmarks/trace_diff.py [--records N]

Promised: at most 60 s and 1 GiB.  Exit code 1 otherwise.  Baseline: reading the files.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = ROOT / "runtime"
SECONDS, MIB = 60.0, 1024.0
OPS = 1000  # records per step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000, help="of each trace")
    count = parser.parse_args().records
    sys.path[:0] = [str(RUNTIME), str(ROOT / "tests")]
    from synthetic import write_trace

    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / f"{name}.tfdt") for name in "ab"]
        steps = count // OPS
        for seed, path in enumerate(paths):  # they differ from half of the steps on
            write_trace(path, steps=steps, ops=OPS, differs=[(steps // 2, 500)], seed=seed)
        size = os.path.getsize(paths[0]) / 1e6
        command = [sys.executable, "-m", "tfdeterminism.trace", "diff"]
        start = time.perf_counter()
        process = subprocess.run([*command, *paths, "--json"], env={**os.environ, "PYTHONPATH": str(RUNTIME)},
                             capture_output=True, text=True)  # fmt: skip
        seconds = time.perf_counter() - start
        start = time.perf_counter()
        for path in paths:
            Path(path).read_bytes()
        baseline = time.perf_counter() - start
    if process.returncode != 1:
        sys.exit(f"diff said {process.returncode}: {process.stderr}")
    result = json.loads(process.stdout)
    is_right = (result["first_step"], [culprit["op_name"] for culprit in result["culprits"]]) == (steps // 2, ["op500"])
    mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"2 x {steps * OPS:,} records, {size:.0f} MB a trace, {result['differing']:,} differ")
    print(f"{seconds:.1f} s (promised: {SECONDS:.0f} s), {mib:.0f} MiB (promised: {MIB:.0f} MiB)")
    print(f"baseline, reading the two files: {baseline:.1f} s")
    print("culprit: right" if is_right else f"culprit: WRONG: {result['culprits']}")
    return int(not is_right or seconds > SECONDS or mib > MIB)


if __name__ == "__main__":
    sys.exit(main())
