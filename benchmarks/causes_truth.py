"""Verify the answers of the cause programs, by runs of each program unchanged and with its fix.

    python benchmarks/causes_truth.py PYTHON {torch,tensorflow} [NAME...] [--runs 3]

PYTHON: an interpreter with the framework.  Runs are compared by the digests of their final weights, without probes.
Unchanged programs must differ within the number of runs that their answers allow; clean ones must not; if only the
first run differs, all later ones must agree.  With their fixes, all runs must agree.  Exit code 1 otherwise.
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

Run = Callable[[Path], str]  # from the folder of a program to the digest of its final weights


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; all, if none is named")
    parser.add_argument("--runs", type=int, default=3, help="that must agree (default 3)")
    options = parser.parse_args()
    wrong_programs, python = 0, os.path.abspath(options.python)
    for program in programs(options.framework, options.names):
        with tempfile.TemporaryDirectory() as folder:
            faults = faults_of(program, Path(folder), options.runs, lambda copy: digest_of_run(python, copy))
        wrong_programs += bool(faults)
        print(f"{program.name}: {'; '.join(faults) or 'true'}", flush=True)
    print(
        f"{wrong_programs} programs are not what their answers say"
        if wrong_programs
        else "all are what their answers say"
    )
    return int(wrong_programs > 0)


def faults_of(program: CauseProgram, folder: Path, runs: int, run: Run) -> list[str]:
    """Return how a program's runs contradict its answers, or the error of a run."""
    try:
        return _faults_of(program, folder, runs, run)
    except (RuntimeError, TraceFormatError) as error:
        return [str(error)]


def _faults_of(program: CauseProgram, folder: Path, runs: int, run: Run) -> list[str]:
    faults = faults_as_it_is(program, program.copy(folder / "program"), runs, run)
    if program.causes:
        (folder / "program").rename(folder / "as-it-is")  # the fixed program must have the same path
        digests = [run(program.copy(folder / "program", fixed=True))]
        digests += [run(folder / "program") for _ in range(fixed_runs(program, runs) - 1)]
        faults += faults_of_each(program, folder, run)
        if len(set(digests)) > 1:
            faults.append(f"fixed, {len(set(digests))} different ends in {len(digests)} runs")
    return faults


def faults_of_each(program: CauseProgram, folder: Path, run: Run) -> list[str]:
    """Check that each of several causes makes runs differ by itself; return messages about those that do not.

    copy(fixed=True, but=kind) corrects all causes but those of one kind.
    """
    faults = []
    for kind in sorted(program.kinds) if len(program.causes) > 1 else ():
        copy = program.copy(folder / kind / "program", fixed=True, but=kind)
        if run(copy) == run(copy):
            faults.append(f"no difference by {kind} alone")
    return faults


def fixed_runs(program: CauseProgram, runs: int) -> int:
    """Return the number of runs with the fix.

    It is higher for programs that rarely differ: program.runs is the number of runs in which two surely do.
    """
    return max(runs, program.runs)


def faults_as_it_is(program: CauseProgram, copy: Path, runs: int, run: Run) -> list[str]:
    digests = [run(copy), run(copy)]
    limit = runs if program.first_run_only or not program.causes else program.runs
    while len(digests) < limit and (program.first_run_only or len(set(digests)) == 1):
        digests.append(run(copy))
    if "None" in digests:
        return ["a run had no final weights"]
    if not program.causes:
        return [f"clean, {len(set(digests))} different ends in {len(digests)} runs"] if len(set(digests)) > 1 else []
    if program.first_run_only:
        later_digests = set(digests[1:])
        return (
            []
            if len(later_digests) == 1 and digests[0] not in later_digests
            else [f"not only the first of {len(digests)} runs differs"]
        )
    return [] if len(set(digests)) > 1 else [f"no difference in {len(digests)} runs"]


def digest_of_run(python: str, program: Path) -> str:
    with tempfile.TemporaryDirectory() as trace_folder:
        command = [
            python,
            "-m",
            "tfdeterminism.trace",
            "run",
            "--level",
            "none",
            "--out",
            trace_folder,
            "--",
            "main.py",
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3"}
        process = subprocess.run(command, cwd=program, env=environment, capture_output=True, text=True, timeout=300)
        if process.returncode:
            raise RuntimeError(f"ended with {process.returncode}: {process.stderr[-1500:]}")
        return str(digest_of_weights(trace_folder))


if __name__ == "__main__":
    sys.exit(main())
