"""A project whose framework is NumPy alone: its environment takes seconds to build, its cases as long as asked."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tfdet.base.paths import Project

ROOT = Path(__file__).parents[1]
NEEDED = ("iniconfig", "numpy", "packaging", "pluggy", "pygments", "pytest")
FRAMEWORK = """
name = "Bare"
package = "numpy"
cite = ["nowhere"]
lines = {stock = "Bare"}
"""
ENVIRONMENT = """
line = "stock"
version = "1.0"
framework_version = "unknown"
image = "nowhere:none"
digest = "unknown"
python = "3.11"
os = "unknown"
cuda = "unknown"
cudnn = "unknown"
min_driver = "unknown"
cuda_arch = "unknown"
cite = ["nowhere"]

[pip]
python = "3.11"
cpu = "numpy"
gpu = "numpy"
"""
SOURCE = """
title = "a sum of nothing"
group = "gpu-confirmed"
order = {order}
api = "bare.sum"
direction = "forward"
devices = ["cpu"]
cite = ["nowhere"]
"""
SOLUTION = """
name = "{key}"
description = "the same again"
order = 1
applies_to_all_ops = true
cite = ["nowhere"]

[apply]
"""
CASES = """
import os
import time
import numpy as np
from tfdet_probe import case
{cases}
"""
CASE = """

@case("bare-{number}", modes=("host",), n=[{numbers}])
def bare_{number}(make, n):
    def run():
        time.sleep({seconds})
        return [np.arange(n + 3)]
    return make.host(run)
"""


def bare_project(root: Path, *, sources: int, cases: int, seconds: float = 0.0, solutions: int = 1) -> Project:
    """Create the environment `bare1.0` with the sources `bare-0` and so on, each with this number of cases."""
    matrix = root / "matrix"
    for kind in ("environments/bare", "sources/bare", "solutions/bare", "frameworks"):
        (matrix / kind).mkdir(parents=True)
    for kind in ("devices", "schema"):
        shutil.copytree(ROOT / "matrix" / kind, matrix / kind)
    shutil.copy(ROOT / "matrix" / "solutions" / "none.toml", matrix / "solutions")
    (matrix / "frameworks" / "bare.toml").write_text(FRAMEWORK, "utf-8")
    (matrix / "environments" / "bare" / "bare1.0.toml").write_text(ENVIRONMENT, "utf-8")
    for number in range(sources):
        (matrix / "sources" / "bare" / f"bare-{number}.toml").write_text(SOURCE.format(order=number + 1), "utf-8")
    for number in range(solutions):
        (matrix / "solutions" / "bare" / f"AGAIN{number}.toml").write_text(
            SOLUTION.format(key=f"AGAIN{number}"), "utf-8"
        )
    suite = root / "tests" / "suite" / "bare"
    suite.mkdir(parents=True)
    numbers = ", ".join(map(str, range(cases)))
    text = "".join(CASE.format(number=number, numbers=numbers, seconds=seconds) for number in range(sources))
    (suite / "test_bare.py").write_text(CASES.format(cases=text), "utf-8")
    locks = root / "docker" / "locks"
    locks.mkdir(parents=True)
    (locks / "bare1.0-cpu.txt").write_text(_lock(), "utf-8")
    (root / "runtime").symlink_to(ROOT / "runtime")
    return Project(root)


def environ(project: Project) -> dict[str, str]:
    """Return the variables that add this project, and the adapter of its framework, to a tfdet's environment."""
    return {"TFDET_ROOT": str(project.root), "TFDET_FRAMEWORKS": str(ROOT / "tests" / "meta" / "frameworks")}


def _lock() -> str:
    """Return the lock file of the environment: the pins of NEEDED from this checkout's own requirements."""
    entries = re.split(r"(?m)^(?=[a-z0-9])", (ROOT / "requirements.txt").read_text("utf-8"))
    return "".join(entry for entry in entries if entry.partition("==")[0] in NEEDED)
