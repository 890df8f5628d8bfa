"""Does `locate` prove the causes in programs that have a known one? Each program of the collection, searched whole.

    python benchmarks/causes.py PYTHON {torch,tensorflow} [NAME...] [--json FILE] [--no-fix]

PYTHON: an interpreter with the framework.  The programs: tests/runtime/cause_programs.  Each is searched in a copy of
its own, with --fix, and what `locate --json` says is compared with its answers.  Promised: cause and place right of
>= 95 %, the fix holds of >= 90 %, nothing false of a clean program, a median time to the cause and its tried fix of
<= 20 x the plain program's.
Baseline: the plain program, run just before.  Exit code 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "runtime"), str(ROOT / "tests" / "runtime")]
from cause_answers import Outcome, compared  # noqa: E402
from cause_collection import FRAMEWORKS, CauseProgram, programs  # noqa: E402

RIGHT, FIXED, TIMES = 0.95, 0.90, 20
HELD = {5: True, 1: False}  # exit codes of `locate --fix`: the runs agree with it; they differ still
ENDED = (0, 1, 5)  # exit codes of a search that has an answer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; all, if none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    parser.add_argument("--no-fix", action="store_true", help="try no fix")
    options = parser.parse_args()
    return reported(_outcomes(options), options.json)


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    for program in programs(options.framework, options.names):
        with tempfile.TemporaryDirectory() as folder:
            yield searched(program, os.path.abspath(options.python), Path(folder), not options.no_fix)


def reported(outcomes: Iterable[Outcome], kept: Path | None) -> int:
    """Print each as it comes, then the totals, and write all into a file; the exit code."""
    found = []
    for one in outcomes:
        found.append(one)
        print(line_of(one), flush=True)
        if kept:
            kept.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n", "utf-8")
    broken = broken_promises(found)
    print("\n".join([*totals(found), *broken]))
    return int(bool(broken))


def searched(program: CauseProgram, python: str, folder: Path, fix: bool) -> Outcome:
    """Run the plain program for its time, and search another copy of it."""
    began = time.perf_counter()
    run(python, program.copy(folder / "plain"), "main.py")
    plain = time.perf_counter() - began
    command = ["-m", "tfdeterminism.trace", "locate", "--json", *(["--fix"] if fix else []), "--", "main.py"]
    began = time.perf_counter()
    done = run(python, program.copy(folder / "program"), *command, check=False)
    times = (time.perf_counter() - began) / plain
    if done.returncode not in ENDED:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Outcome(program.name, False, False, None, not program.causes, 0, times, f"{done.returncode}: {last}")
    return compared(program, json.loads(done.stdout), HELD.get(done.returncode) if fix else None, times)


def run(python: str, folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=check
    )


def line_of(one: Outcome) -> str:
    marks = {True: "right", False: "WRONG", None: "-"}
    return (
        f"{one.program}: cause {marks[one.kinds]}, place {marks[one.places]}, fix {marks[one.fix]}"
        f"{', FALSE STATEMENT' if one.false else ''}; {one.runs} runs, {one.times:.1f} x; {one.said}"
    )


def totals(found: Sequence[Outcome]) -> list[str]:
    faulty = [one for one in found if one.kinds is not None]
    clean = [one for one in found if one.kinds is None]
    return [
        f"cause right: {_share([one.kinds for one in faulty])}",
        f"cause and place right: {_share([one.places for one in faulty])}",
        f"fix holds: {_share([one.fix for one in faulty])}",
        f"false of clean programs: {sum(one.false for one in clean)} of {len(clean)}",
        *(
            f"median time, {name}: {_median(some):.1f} x the plain program"
            for name, some in (("with a cause", faulty), ("clean", clean))
            if some
        ),
    ]


def _median(found: Sequence[Outcome]) -> float:
    return statistics.median(one.times for one in found) if found else 0.0


def _share(marks: Sequence[bool | None]) -> str:
    return f"{sum(map(bool, marks))} of {len(marks)}"


def broken_promises(found: Sequence[Outcome]) -> list[str]:
    faulty = [one for one in found if one.kinds is not None]
    kept = {
        f"cause and place right of >= {RIGHT:.0%}": sum(map(bool, (one.places for one in faulty)))
        >= RIGHT * len(faulty),
        f"the fix holds of >= {FIXED:.0%}": sum(map(bool, (one.fix for one in faulty))) >= FIXED * len(faulty),
        "nothing false of a clean program": not any(one.false for one in found if one.kinds is None),
        f"median time to a cause <= {TIMES} x": _median(faulty) <= TIMES,
    }
    return [f"not held: {promise}" for promise, held in kept.items() if not held]


if __name__ == "__main__":
    sys.exit(main())
