"""A runner for unittest suites of other projects on the virtual GPU: workers, results, known failures."""

from __future__ import annotations

import collections
import json
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

WORKER = Path(__file__).resolve().parent / "suite_worker.py"


@dataclass(frozen=True)
class Result:
    """The outcome of a test: passed, skipped, closed (it needs a vendor library), failed, hung or died; and why."""

    how: str
    why: str
    launches: int = 0

    @property
    def fails(self) -> bool:
        """Return whether the test fails the suite."""
        return self.how not in ("passed", "skipped", "closed")


Results = Mapping[str, Result]


class Worker:
    """A process that runs one test after the other; replaced if a test hangs, kills it or leaves the device dead."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], limit: float, folder: Path | None = None):
        """Set the command (a Python that runs WORKER), the limit in seconds per test, and the working folder."""
        self.command, self.env, self.limit, self.folder = list(command), env, limit, folder
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, test: str) -> Result:
        """Run a test; return its result."""
        if self.process is None or self.process.poll() is not None:
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=null, env=self.env, cwd=self.folder
            )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(test.encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], self.limit)[0]:
            self.stop()
            return Result("hung", f"no end within {self.limit} s")
        line = self.process.stdout.readline()
        if not line:
            return Result("died", f"the process ended with {self.process.wait()}")
        answer = json.loads(line)
        if answer["dead"]:
            self.stop()
        return to_result(answer["how"], answer["why"], answer["refused"], answer["launches"])

    def stop(self) -> None:
        """Kill the process."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


def to_result(how: str, why: str, refused: Sequence[str], launches: int) -> Result:
    """Return the result of a test; a failed test that called a vendor library has the call as its reason."""
    # Other entries, such as refused kernels, have a reason after ": ".
    calls = [call for call in refused if ": " not in call]
    if how == "failed" and calls:
        return Result("closed", ", ".join(calls), launches)
    return Result(how, why, launches)


def run_all(worker: Worker, tests: Sequence[str]) -> dict[str, Result]:
    """Run the tests one after the other; return {test: result}."""
    results: dict[str, Result] = {}
    for test in tests:
        results[test] = worker.run(test)
        print(f"\r{len(results)} of {len(tests)} ", end="", file=sys.stderr, flush=True)
        if results[test].fails:
            print(results[test].how, test, flush=True)
    worker.stop()
    return results


def write(results: Results, path: Path) -> None:
    path.write_text(json.dumps({test: asdict(result) for test, result in results.items()}, indent=1))


def report(results: Results, others: Mapping[str, Sequence[str]]) -> int:
    """Print the results; return 1 if a test fails that is not in `others`, or one of them passes.

    `others` are the known failures: {reason: tests}.
    """
    reasons = {test: reason for reason, tests in others.items() for test in tests}
    failing = {test: result for test, result in results.items() if result.fails}
    for test, result in failing.items():
        last_line = result.why.strip().splitlines()[-1] if result.why.strip() else ""
        print(f"{result.how:7} {test}: {reasons.get(test, 'NOT KNOWN: ' + last_line)}")
    for (how, why), count in collections.Counter(
        (result.how, result.why) for result in results.values() if result.how in ("skipped", "closed")
    ).most_common():
        print(f"{how} {count:4}: {why}")
    fixed = [test for test in reasons if test in results and results[test].how == "passed"]
    for test in fixed:
        print(f"passes now, and stands among the others: {test}")
    print(summary(results))
    return 1 if fixed or failing.keys() - reasons.keys() else 0


def summary(results: Results) -> str:
    """Return one line with the counts of all outcomes."""
    counts = collections.Counter(result.how for result in results.values())
    count = len(results) - counts["skipped"] - counts["closed"]
    launching = sum(result.how == "passed" and result.launches > 0 for result in results.values())
    return (
        f"{counts['passed']} of {count} passed ({100 * counts['passed'] / max(count, 1):.1f} %; {launching} of them "
        f"ran kernels of it); besides, {counts['skipped']} skip themselves, {counts['closed']} need a vendor library"
    )
