"""Overhead of the patches: time and peak memory of each replaced op and the original, in the same run, on the CPU.

Usage: python benchmarks/patches.py [ENV] [--json | --write] [--repeats N]     default: tf2.0, which needs every patch
--write stores the costs in matrix/costs, for `tfdet show`.  Baseline: the original op.
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
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="one JSON line for each op")
    formats.add_argument("--write", action="store_true", help="keep it in matrix/costs")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    project = find_project()
    costs = []
    if not options.json:
        print(f"{'patch':28}{'size':40}{'original ms':>12}{'replaced ms':>12}{'time':>8}{'memory':>8}")
    for cost in measure_costs(project, options.environment, options.repeats):
        print(cost.model_dump_json() if options.json else format_cost(cost), flush=True)
        costs.append(cost)
    if options.write:
        print(write(project, "cpu", options.environment, costs))


def measure_costs(project: Project, key: str, repeats: int) -> Iterator[Cost]:
    """Measure all patches; raise CalledProcessError if the measuring process fails."""
    python = VenvEngine(project).interpreter(key, load_matrix(project.matrix).environment(key), "cpu")
    command = [str(python), str(Path(__file__).with_name("inside_patches.py")), str(repeats)]
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
    common = {"environment": key, "device": "cpu", "processor": processor()}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            started = datetime.now(UTC).isoformat(timespec="seconds")
            yield Cost.model_validate(common | json.loads(line) | {"started": started})
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def processor() -> str:
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return models[0].partition(":")[2].strip() if models else platform.machine()


def format_cost(cost: Cost) -> str:
    times = f"{1000 * cost.original_seconds:12.2f}{1000 * cost.seconds:12.2f}"
    return f"{cost.patch:28}{cost.size:40}{times}{cost.time_ratio:7.1f}x{cost.memory_ratio:7.1f}x"


if __name__ == "__main__":
    main()
