"""What the patches cost: time and peak memory of each patched op against the original, in the same run, on the CPU.

Usage: python benchmarks/patches.py [ENV] [--json] [--repeats N]     default: tf2.0, which needs every patch
The original is the baseline; below a thousandth of a second the ratio is mostly the overhead of a session.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix
from tfdet.paths import find_project


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", nargs="?", default="tf2.0")
    parser.add_argument("--json", action="store_true", help="one JSON line for each op")
    parser.add_argument("--repeats", type=int, default=11)
    asked = parser.parse_args()
    project = find_project()
    environment = load_matrix(project.matrix).environment(asked.environment)
    python = VenvEngine(project).interpreter(asked.environment, environment, "cpu")
    command = [python, Path(__file__).with_name("inside_patches.py"), str(asked.repeats)]
    path = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(project.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, env=path, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        if not asked.json:
            print(f"{'patch':28}{'size':40}{'original ms':>12}{'patched ms':>12}{'time':>8}{'memory':>8}")
        for line in run.stdout:
            show(line, as_json=asked.json, key=asked.environment)
    raise SystemExit(run.returncode)


def show(line: str, *, as_json: bool, key: str) -> None:
    cost = json.loads(line)
    if as_json:
        print(json.dumps({"environment": key, "device": "cpu", **cost}), flush=True)
        return
    times = f"{1000 * cost['original_seconds']:12.2f}{1000 * cost['seconds']:12.2f}"
    ratios = f"{cost['time_ratio']:7.1f}x{cost['memory_ratio']:7.1f}x"
    print(f"{cost['patch']:28}{cost['size']:40}{times}{ratios}", flush=True)


if __name__ == "__main__":
    main()
