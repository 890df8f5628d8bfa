"""What the patches cost: time and peak memory of each patched op against the original, in the same run, on the CPU.

Usage: python benchmarks/patches.py [ENV] [--json | --write] [--repeats N]     default: tf2.0, which needs every patch
--write keeps it in matrix/costs, where `tfdet show` finds it.  The original is the baseline.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tfdet.base.paths import Project, find_project
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix
from tfdet.store.costs import Cost, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", nargs="?", default="tf2.0")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON line for each op")
    how.add_argument("--write", action="store_true", help="keep it in matrix/costs")
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    project = find_project()
    costs = []
    if not asked.json:
        print(f"{'patch':28}{'size':40}{'original ms':>12}{'replaced ms':>12}{'time':>8}{'memory':>8}")
    for cost in measured(project, asked.environment, asked.repeats):
        print(cost.model_dump_json() if asked.json else line(cost), flush=True)
        costs.append(cost)
    if asked.write:
        print(write(project, "cpu", asked.environment, costs))


def measured(project: Project, key: str, repeats: int) -> Iterator[Cost]:
    """CalledProcessError where the measuring process fails."""
    python = VenvEngine(project).interpreter(key, load_matrix(project.matrix).environment(key), "cpu")
    command = [str(python), str(Path(__file__).with_name("inside_patches.py")), str(repeats)]
    path = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
    same = {"environment": key, "device": "cpu", "processor": processor()}
    with subprocess.Popen(command, env=path, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for text in run.stdout:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            yield Cost.model_validate(same | json.loads(text) | {"started": started})
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, command)


def processor() -> str:
    named = [text for text in Path("/proc/cpuinfo").read_text().splitlines() if text.startswith("model name")]
    return named[0].partition(":")[2].strip() if named else platform.machine()


def line(cost: Cost) -> str:
    times = f"{1000 * cost.original_seconds:12.2f}{1000 * cost.seconds:12.2f}"
    return f"{cost.patch:28}{cost.size:40}{times}{cost.time_ratio:7.1f}x{cost.memory_ratio:7.1f}x"


if __name__ == "__main__":
    main()
