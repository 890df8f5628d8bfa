"""Accuracy of `tfdet locate --fix` on programs with a known cause, and on clean ones.

    python benchmarks/causes.py PYTHON {torch,tensorflow} [NAME...] [--json FILE] [--no-fix]

PYTHON: an interpreter with the framework.  The programs: tests/runtime/cause_programs.  Each is searched in its own
copy, with --fix, and the result of `locate --json` is compared with its answers.  Promised: cause and place right of
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

MIN_RIGHT, MIN_FIXED, MAX_TIMES = 0.95, 0.90, 20
FIX_HELD = {5: True, 1: False}  # {exit code of `locate --fix`: whether the runs agree with the fix}
FINISHED = (0, 1, 5)  # exit codes of a search with a result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="an interpreter with the framework")
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("names", nargs="*", help="of programs; all, if none is named")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found")
    parser.add_argument("--no-fix", action="store_true", help="try no fix")
    options = parser.parse_args()
    return report(_outcomes(options), options.json)


def _outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    for program in programs(options.framework, options.names):
        with tempfile.TemporaryDirectory() as folder:
            yield search(program, os.path.abspath(options.python), Path(folder), not options.no_fix)


def report(outcomes: Iterable[Outcome], file: Path | None) -> int:
    """Print each outcome when it is known, then the totals; write all into a file; return the exit code."""
    finished = []
    for outcome in outcomes:
        finished.append(outcome)
        print(line_of(outcome), flush=True)
        if file:
            file.write_text(
                json.dumps([asdict(finished_outcome) for finished_outcome in finished], indent=1) + "\n", "utf-8"
            )
    broken = broken_promises(finished)
    print("\n".join([*totals(finished), *broken]))
    return int(bool(broken))


def search(program: CauseProgram, python: str, folder: Path, fix: bool) -> Outcome:
    """Measure the time of the plain program, and search another copy of it; return what was said, beside the answers.

    Of the Outcome `kinds`, `places` and `fix` are whether these are right, None where there was nothing to say or try;
    `false` is whether something false was said, and `times` the search's time in runs of the plain program.
    """
    start = time.perf_counter()
    run(python, program.copy(folder / "plain"), "main.py")
    plain = time.perf_counter() - start
    command = ["-m", "tfdeterminism.trace", "locate", "--json", *(["--fix"] if fix else []), "--", "main.py"]
    start = time.perf_counter()
    process = run(python, program.copy(folder / "program"), *command, check=False)
    times = (time.perf_counter() - start) / plain
    if process.returncode not in FINISHED:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        return Outcome(program.name, False, False, None, not program.causes, 0, times, f"{process.returncode}: {last}")
    return compared(program, json.loads(process.stdout), FIX_HELD.get(process.returncode) if fix else None, times)


def run(python: str, folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runtime"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=check
    )


def line_of(outcome: Outcome) -> str:
    marks = {True: "right", False: "WRONG", None: "-"}
    return (
        f"{outcome.program}: cause {marks[outcome.kinds]}, place {marks[outcome.places]}, fix {marks[outcome.fix]}"
        f"{', FALSE STATEMENT' if outcome.false else ''}; {outcome.runs} runs, {outcome.times:.1f} x; {outcome.said}"
    )


def totals(outcomes: Sequence[Outcome]) -> list[str]:
    faulty = [outcome for outcome in outcomes if outcome.kinds is not None]
    clean = [outcome for outcome in outcomes if outcome.kinds is None]
    return [
        f"cause right: {_share([outcome.kinds for outcome in faulty])}",
        f"cause and place right: {_share([outcome.places for outcome in faulty])}",
        f"fix holds: {_share([outcome.fix for outcome in faulty])}",
        f"false of clean programs: {sum(outcome.false for outcome in clean)} of {len(clean)}",
        *(
            f"median time, {name}: {_median(group):.1f} x the plain program"
            for name, group in (("with a cause", faulty), ("clean", clean))
            if group
        ),
    ]


def _median(outcomes: Sequence[Outcome]) -> float:
    return statistics.median(outcome.times for outcome in outcomes) if outcomes else 0.0


def _share(marks: Sequence[bool | None]) -> str:
    return f"{sum(map(bool, marks))} of {len(marks)}"


def broken_promises(outcomes: Sequence[Outcome]) -> list[str]:
    faulty = [outcome for outcome in outcomes if outcome.kinds is not None]
    promises = {
        f"cause and place right of >= {MIN_RIGHT:.0%}": sum(map(bool, (outcome.places for outcome in faulty)))
        >= MIN_RIGHT * len(faulty),
        f"the fix holds of >= {MIN_FIXED:.0%}": sum(map(bool, (outcome.fix for outcome in faulty)))
        >= MIN_FIXED * len(faulty),
        "nothing false of a clean program": not any(outcome.false for outcome in outcomes if outcome.kinds is None),
        f"median time to a cause <= {MAX_TIMES} x": _median(faulty) <= MAX_TIMES,
    }
    return [f"not held: {promise}" for promise, is_kept in promises.items() if not is_kept]


if __name__ == "__main__":
    sys.exit(main())
