"""Overhead of the ledger: the CPU time of programs with a ledger, relative to that of the same programs without one.

    python benchmarks/ledger.py PYTHON {torch,tensorflow} [NAME...]

A ledger is the file into which a run of `tfdet locate` notes what enters the program: times, random numbers, files, the
order of threads.  A pin gives the program the same value of these in each run.
PYTHON: an interpreter with the framework.  Programs: the clean ones of tests/runtime/cause_programs, or those named.
Each runs alternately plain and as `locate` runs it without pins, three times; CPU times are those of all processes.
Promised: a median ratio of at most 1.1.  Baseline: the plain program, run just before.  Exit code 1 if it is broken, or
if the last line (the loss) of a clean program differs with a ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime")]
from cause_collection import FRAMEWORKS, CauseProgram, programs  # noqa: E402

from tfdeterminism.trace import backends  # noqa: E402
from tfdeterminism.trace.interpose import variables  # noqa: E402

MAX_RATIO, ROUNDS = 1.1, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; the clean ones, if none is named")
    options = parser.parse_args()
    selected = [
        program for program in programs(options.framework, options.names) if options.names or not program.causes
    ]
    results = [measure(program, os.path.abspath(options.python)) for program in selected]
    ratio = statistics.median(result["ratio"] for result in results)
    print(f"median ratio {ratio:.2f} of {len(results)} programs, promised {MAX_RATIO}")
    return int(ratio > MAX_RATIO or not all(result["same"] for result in results))


def measure(program: CauseProgram, python: str) -> dict:
    """Return the CPU seconds without and with a ledger, and whether the last lines of the output are equal."""
    plain, with_ledger, last_lines = [], [], []
    for _ in range(ROUNDS):
        for seconds, ledger in ((plain, False), (with_ledger, True)):
            with tempfile.TemporaryDirectory() as folder:
                cpu_seconds, text = run(
                    program.copy(Path(folder) / "program"), python, Path(folder) if ledger else None
                )
            seconds.append(cpu_seconds)
            last_lines.append(text.strip().splitlines()[-1:])
    result = {
        "program": program.name,
        "plain": round(statistics.median(plain), 2),
        "noted": round(statistics.median(with_ledger), 2),
        "ratio": round(statistics.median(with_ledger) / statistics.median(plain), 3),
        "same": last_lines.count(last_lines[0]) == len(last_lines) or bool(program.causes),
    }
    print(json.dumps(result), flush=True)
    return result


def run(work: Path, python: str, folder: Path | None) -> tuple[float, str]:
    """Return (CPU seconds, output) of a run.  folder: for its ledgers; None for a plain run."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": "", "PYTHONHASHSEED": "0"}
    if folder is not None:
        environment.update(ledger_environment(work, folder))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run([python, "main.py"], cwd=work, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, process.stdout


def ledger_environment(work: Path, folder: Path) -> dict[str, str]:
    """Return the environment variables that enable the ledger, without pins.

    out: the folder of the ledgers.  kept: that of copies of the files that the program changes outside of its folder.
    vary: kinds of values to vary on purpose.
    """
    for name in ("out", "kept"):
        (folder / name).mkdir()
    settings = {
        "root": str(work),
        "out": str(folder / "out"),
        "kept": str(folder / "kept"),
        "epoch": 0.0,
        "pins": {},
        "vary": {},
        "frameworks": sorted(backends.entries()),
        "longest_wait": "600",
    }
    return {
        variables.SETTINGS_VARIABLE: json.dumps(settings),
        variables.POSITION: "0",
        "PYTHONPATH": variables.hooked_path(""),
    }


if __name__ == "__main__":
    sys.exit(main())
