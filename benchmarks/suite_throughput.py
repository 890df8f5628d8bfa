"""Cells per minute of the suite, which forks, relative to one process per test, on the same cases (promise: >= 10 x).

Usage: python benchmarks/suite_throughput.py [ENV]     default: tf2.21, on the CPU
A cell is a case of the suite under one solution.  Both do the same work for it: one fresh runtime, one reference, five
repeats, which are compared byte by byte.
Baseline: a new Python process that imports TensorFlow for each cell, as one run of `pytest` per test does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tfdet.base.paths import Project, find_project
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import write_plan

FRAMEWORK = "tensorflow"
SOURCES = ["bias-add-backprop", "reduce-sum", "reduce-mean", "gather-backprop", "softmax-xent", "segment-sum",
           "scatter-nd", "cudnn-max-pool-backprop"]  # fmt: skip
REPEATS = 5
BASELINE_CELLS = 12
ONE_CELL = """
import importlib, json, os, sys, tempfile
suite, module, function, key, plan, solution = sys.argv[1:]
from tfdet_probe import devices, frameworks
from tfdet_probe.core import child
from tfdet_probe.core.child_job import ChildJob, Limits, RunTarget
from tfdet_probe.core.plan import Plan
plan = Plan.load(plan)
family = getattr(importlib.import_module(module), function)
target = RunTarget(frameworks.load_adapter(plan.framework), devices.by_cli_name("cpu"))
case = next(c for c in family.cases(target.framework.modes) if c.key == key)
with tempfile.TemporaryDirectory() as folder:
    limits = Limits(120, 4096)
    job = ChildJob(case, plan.solutions[solution], target, REPEATS, 0, limits, plan.determinism_variables)
    child.main(job, folder)
    report = json.load(open(os.path.join(folder, "report-0.json")))
assert "error" not in report or report["error"]["kind"] == "unsupported", report
""".replace("REPEATS", str(REPEATS))


def suite(project: Project, python: Path, plan: Path, out: Path) -> tuple[float, list[dict[str, str]]]:
    """Run the suite once; return (seconds with the import, records)."""
    command = [python, "-m", "tfdet_probe", "--plan", plan, "--suite", project.suite(FRAMEWORK), "--device", "cpu"]
    command += ["--out", str(out)]
    command += ["--repeats", str(REPEATS), "--processes", "1", *(f"--source={source}" for source in SOURCES)]
    start = time.perf_counter()
    subprocess.run(command, env=environ(project), check=True, capture_output=True)
    return time.perf_counter() - start, [json.loads(line) for line in out.read_text().splitlines()]


def run_in_process(project: Project, python: Path, plan: Path, record: dict[str, str]) -> float:
    module, function = locate_case(project, record["case"])
    start = time.perf_counter()
    arguments = [project.suite(FRAMEWORK), module, function, record["case"], plan, record["solution"]]
    subprocess.run([python, "-c", ONE_CELL, *arguments], env=environ(project), check=True, capture_output=True)
    return time.perf_counter() - start


def locate_case(project: Project, case: str) -> tuple[str, str]:
    """Return the module and the function of a case, whose key begins with the function's name."""
    for path in sorted(project.suite(FRAMEWORK).glob("test_*.py")):
        names = [line[4:].split("(")[0] for line in path.read_text().splitlines() if line.startswith("def ")]
        for name in sorted(names, key=len, reverse=True):
            if case.startswith(name.replace("_", "-") + "-"):
                return path.stem, name
    raise LookupError(case)


def environ(project: Project) -> dict[str, str]:
    path = f"{project.runtime}:{project.suite(FRAMEWORK)}"
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}


def main() -> None:
    key = sys.argv[1] if len(sys.argv) > 1 else "tf2.21"
    project = find_project()
    matrix = load_matrix(project.matrix)
    python = VenvEngine(project).interpreter(key, matrix.environment(key), "cpu")
    with tempfile.TemporaryDirectory() as folder:
        plan = write_plan(matrix, key, Path(folder, "plan.json"))
        suite_seconds, records = suite(project, python, plan, Path(folder, "records.jsonl"))
        suite_rate = len(records) / suite_seconds * 60
        sample = records[:: max(1, len(records) // BASELINE_CELLS)]
        baseline_seconds = sum(run_in_process(project, python, plan, record) for record in sample)
    baseline_rate = len(sample) / baseline_seconds * 60
    print(f"{key}: {suite_rate:,.0f} cells a minute ({len(records)} cells in {suite_seconds:.1f} s, the import among "
          f"them); one process a test: {baseline_rate:,.0f} ({len(sample)} cells in {baseline_seconds:.1f} s); "
          f"ratio {suite_rate / baseline_rate:.1f} (promise: >= 10)")  # fmt: skip


if __name__ == "__main__":
    main()
