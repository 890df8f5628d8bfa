"""Are the answers of the collection of causes true? Each program runs as it is, and with its fix.

    python benchmarks/causes_truth.py PYTHON {torch,tensorflow} [NAME...] [--runs 3]

PYTHON: an interpreter with the framework.  Runs are compared by the digests of their final weights, without probes.
As it is, a program must differ within the runs that its answers allow; a clean one must not; one of which only the
first run differs must agree from the second on.  With its fix, all must agree.  Exit code 1 if one does otherwise.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime")]
from cause_collection import FRAMEWORKS, CauseProgram, programs  # noqa: E402

from tfdeterminism.trace.schema.format import TraceFormatError  # noqa: E402
from tfdeterminism.trace.search.run_ends import digest_of_weights  # noqa: E402

Run = Callable[[Path], str]  # the folder of a program -> what it ended with


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; all, if none is named")
    parser.add_argument("--runs", type=int, default=3, help="that must agree (default 3)")
    options = parser.parse_args()
    wrong, python = 0, os.path.abspath(options.python)
    for program in programs(options.framework, options.names):
        with tempfile.TemporaryDirectory() as folder:
            faults = faults_of(program, Path(folder), options.runs, lambda at: digest_of_run(python, at))
        wrong += bool(faults)
        print(f"{program.name}: {'; '.join(faults) or 'true'}", flush=True)
    print(f"{wrong} programs are not what their answers say" if wrong else "all are what their answers say")
    return int(wrong > 0)


def faults_of(program: CauseProgram, folder: Path, runs: int, run: Run) -> list[str]:
    """What the answers of a program say and its runs do not."""
    try:
        return _faults_of(program, folder, runs, run)
    except (RuntimeError, TraceFormatError) as error:
        return [str(error)]


def _faults_of(program: CauseProgram, folder: Path, runs: int, run: Run) -> list[str]:
    found = faults_as_it_is(program, program.copy(folder / "program"), runs, run)
    if program.causes:
        (folder / "program").rename(folder / "as-it-is")  # the fixed one lies at the same path
        ends = [run(program.copy(folder / "program", fixed=True))]
        ends += [run(folder / "program") for _ in range(fixed_runs(program, runs) - 1)]
        found += faults_of_each(program, folder, run)
        if len(set(ends)) > 1:
            found.append(f"fixed, {len(set(ends))} different ends in {len(ends)} runs")
    return found


def faults_of_each(program: CauseProgram, folder: Path, run: Run) -> list[str]:
    """Of two causes each has to make a difference alone."""
    found = []
    for kind in sorted(program.kinds) if len(program.causes) > 1 else ():
        left = program.copy(folder / kind / "program", fixed=True, but=kind)
        if run(left) == run(left):
            found.append(f"no difference by {kind} alone")
    return found


def fixed_runs(program: CauseProgram, runs: int) -> int:
    """A program that differs rarely has to agree more often."""
    return max(runs, program.runs)


def faults_as_it_is(program: CauseProgram, copy: Path, runs: int, run: Run) -> list[str]:
    ends = [run(copy), run(copy)]
    limit = runs if program.first_run_only or not program.causes else program.runs
    while len(ends) < limit and (program.first_run_only or len(set(ends)) == 1):
        ends.append(run(copy))
    if "None" in ends:
        return ["a run had no final weights"]
    if not program.causes:
        return [f"clean, {len(set(ends))} different ends in {len(ends)} runs"] if len(set(ends)) > 1 else []
    if program.first_run_only:
        later = set(ends[1:])
        return [] if len(later) == 1 and ends[0] not in later else [f"not only the first of {len(ends)} runs differs"]
    return [] if len(set(ends)) > 1 else [f"no difference in {len(ends)} runs"]


def digest_of_run(python: str, program: Path) -> str:
    with tempfile.TemporaryDirectory() as out:
        command = [python, "-m", "tfdeterminism.trace", "run", "--level", "none", "--out", out, "--", "main.py"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, cwd=program, env=environment, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"ended with {done.returncode}: {done.stderr[-1500:]}")
        return str(digest_of_weights(out))


if __name__ == "__main__":
    sys.exit(main())
