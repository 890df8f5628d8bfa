"""Check that the debug tool finds no difference between two runs of clean programs (ten pairs, all ops).

    python benchmarks/trace_clean.py PYTHON [--pairs N]

PYTHON: an interpreter with TensorFlow.  The programs: tests/runtime/programs/clean_*.py.  Promised: no pair differs.
Exit code 1 if one does.  Baseline: tests/runtime records one pair of each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime")]
PROGRAMS = sorted((ROOT / "tests" / "runtime" / "programs").glob("clean_*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="an interpreter with TensorFlow")
    parser.add_argument("--pairs", type=int, default=10, help="of each program (default 10)")
    options = parser.parse_args()
    from forks import Forks

    differing_pairs = 0
    with tempfile.TemporaryDirectory() as folder, Forks(options.python) as forks:
        for program in PROGRAMS:
            start = time.perf_counter()
            pairs = record(forks, program, Path(folder) / program.stem, options.pairs)
            differing, records = compare(pairs)
            differing_pairs += differing
            print(f"{program.stem}: {len(pairs)} pairs, {differing} differ; {records:,} recorded values a run; "
                  f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    print(f"a promise is broken: {differing_pairs} pairs differ" if differing_pairs else "as promised: no pair differs")
    return int(differing_pairs > 0)


def record(forks, program: Path, folder: Path, count: int) -> list[tuple[Path, Path]]:
    """Trace 2 * count runs, as forks of one process that has imported TensorFlow; return the folders of each pair."""
    from forks import traced

    runs = [folder / str(number) for number in range(2 * count)]
    for process in forks.run([traced(run, program) for run in runs]):
        if process.returncode:
            sys.exit(f"{program.name} ended with {process.returncode}: {process.stderr[-1500:]}")
    return list(zip(runs[::2], runs[1::2], strict=True))


def compare(pairs: list[tuple[Path, Path]]) -> tuple[int, int]:
    """Return (number of pairs that differ, number of values that a run's trace has recorded)."""
    from tfdeterminism.trace.causes import trace_diff
    from tfdeterminism.trace.report import text
    from tfdeterminism.trace.schema.reader import load

    differences = [trace_diff.compare([str(run) for run in pair]) for pair in pairs]
    for difference in differences:
        if difference.result != "same":
            print(text.diff_text(difference))
    records = len(load(str(pairs[0][0] / "trace-0.tfdt")).records)
    return sum(difference.result != "same" for difference in differences), records


if __name__ == "__main__":
    sys.exit(main())
