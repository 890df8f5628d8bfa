"""Does the virtual GPU end cleanly, however often?  python benchmarks/vgpu_soak.py [ENV] [--runs N] [--source ...]

Runs the suite of an environment (default: tf2.0) N times, each time under another schedule, each case in processes of
its own (ten runs in one), and prints every process that did not end by itself and well: a signal, an exit status, no
report, no end in time, too much memory.  A case that is refused by name has ended well; it is not run again.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CLEAN = {"unsupported", "raises"}
EACH = 10  # runs of a process


def records(environment: str, runs: int, out: Path, options: list[str]) -> tuple[int, list[dict]]:
    """Of all cases, with the exit code.  Each run has the next schedule."""
    command = [sys.executable, "-m", "tfdet", "run", environment, "--device", "vgpu", "--solution", "none"]
    command += ["--timeout", "900"]  # a busy machine is no hang
    command += ["--repeats", str(EACH), "--processes", str(-(-runs // EACH)), "--out", str(out), *options]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    return code, [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("environment", nargs="?", default="tf2.0")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--source", action="append", default=[], help="only this one (again: several)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sources = [word for source in chosen.source for word in ("--source", source)]
        code, found = records(chosen.environment, chosen.runs, Path(folder) / "records.jsonl", sources)
    unclean = [one for one in found if one["error"] and one["error"]["kind"] not in CLEAN]
    for one in unclean:
        print(f"{one['case']}, after {one['runs']} runs: {one['error']['kind']}: {one['error']['message']}")
    print(dict(collections.Counter(one["observation"] for one in found)))
    runs = sum(one["runs"] for one in found)
    print(f"{len(found)} cases, {runs} runs in all: {len(unclean)} did not end cleanly; tfdet's exit {code}")
    return 1 if unclean or code else 0


if __name__ == "__main__":
    sys.exit(main())
