"""Soak test of the virtual GPU: python benchmarks/vgpu_soak.py [ENV] [--runs N] [--source ...]

Runs the suite of an environment (default: tf2.0) N times, each time under another schedule, each case in its own
processes (ten runs in each), and prints every process that did not end cleanly: a signal, an exit status, no report, a
timeout, too much memory.  A case that raises or is unsupported has ended cleanly, and is not run again.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CLEAN = {"unsupported", "raises"}
RUNS_PER_PROCESS = 10


def records(environment: str, runs: int, out: Path, options: list[str]) -> tuple[int, list[dict]]:
    """Run all cases, each run with the next schedule; return (exit code, records)."""
    command = [sys.executable, "-m", "tfdet", "run", environment, "--device", "vgpu", "--solution", "none"]
    command += ["--timeout", "900"]  # a case on a busy machine must not count as hung
    command += [
        "--repeats",
        str(RUNS_PER_PROCESS),
        "--processes",
        str(-(-runs // RUNS_PER_PROCESS)),
        "--out",
        str(out),
        *options,
    ]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    return code, [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("environment", nargs="?", default="tf2.0")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--source", action="append", default=[], help="only this one (again: several)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [argument for source in arguments.source for argument in ("--source", source)]
        code, case_records = records(arguments.environment, arguments.runs, Path(folder) / "records.jsonl", sources)
    unclean = [record for record in case_records if record["error"] and record["error"]["kind"] not in CLEAN]
    for record in unclean:
        print(f"{record['case']}, after {record['runs']} runs: {record['error']['kind']}: {record['error']['message']}")
    print(dict(collections.Counter(record["observation"] for record in case_records)))
    runs = sum(record["runs"] for record in case_records)
    print(f"{len(case_records)} cases, {runs} runs in all: {len(unclean)} did not end cleanly; tfdet's exit {code}")
    return 1 if unclean or code else 0


if __name__ == "__main__":
    sys.exit(main())
