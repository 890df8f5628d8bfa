"""What noting costs: CPU time of programs whose calls are noted, by that of the same programs as they are.

    python benchmarks/ledger.py PYTHON {torch,tensorflow} [NAME...]

PYTHON: an interpreter with the framework.  Programs: the clean ones of tests/runtime/cause_programs, or those named.
Each runs in turn plain and as `locate` runs it without pins, three times; the CPU time is that of all its processes.
Promised: a median ratio of at most 1.1.  Baseline: the plain program, run just before.  Exit code 1 if it is broken, or
if a clean program ends with another line (its loss) when it is noted.
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

PROMISED, ROUNDS = 1.1, 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; the clean ones, if none is named")
    options = parser.parse_args()
    wanted = [one for one in programs(options.framework, options.names) if options.names or not one.causes]
    figures = [measured(one, os.path.abspath(options.python)) for one in wanted]
    ratio = statistics.median(one["ratio"] for one in figures)
    print(f"median ratio {ratio:.2f} of {len(figures)} programs, promised {PROMISED}")
    return int(ratio > PROMISED or not all(one["same"] for one in figures))


def measured(program: CauseProgram, python: str) -> dict:
    """CPU seconds plain and noted, by turns, and if both print the same."""
    plain, noted, printed = [], [], []
    for _ in range(ROUNDS):
        for seconds, ledger in ((plain, False), (noted, True)):
            with tempfile.TemporaryDirectory() as folder:
                used, text = run(program.copy(Path(folder) / "program"), python, Path(folder) if ledger else None)
            seconds.append(used)
            printed.append(text.strip().splitlines()[-1:])
    found = {
        "program": program.name,
        "plain": round(statistics.median(plain), 2),
        "noted": round(statistics.median(noted), 2),
        "ratio": round(statistics.median(noted) / statistics.median(plain), 3),
        "same": printed.count(printed[0]) == len(printed) or bool(program.causes),
    }
    print(json.dumps(found), flush=True)
    return found


def run(work: Path, python: str, folder: Path | None) -> tuple[float, str]:
    """CPU seconds of a run and what it printed. folder: for its ledgers, None for a plain one."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": "", "PYTHONHASHSEED": "0"}
    if folder is not None:
        environment.update(noting(work, folder))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([python, "main.py"], cwd=work, env=environment, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def noting(work: Path, folder: Path) -> dict[str, str]:
    """The variables by which calls are noted, without a pin."""
    for name in ("out", "kept"):
        (folder / name).mkdir()
    told = {
        "root": str(work),
        "out": str(folder / "out"),
        "kept": str(folder / "kept"),
        "epoch": 0.0,
        "pins": {},
        "vary": {},
        "frameworks": sorted(backends.entries()),
    }
    return {
        variables.VARIABLE: json.dumps(told),
        variables.POSITION: "0",
        "PYTHONPATH": variables.hooked_path(""),
    }


if __name__ == "__main__":
    sys.exit(main())
