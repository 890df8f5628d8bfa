"""Overhead of containers: the seconds that `docker run` adds to the suite, and a rebuild after a change of the suite.

    python benchmarks/container_overhead.py tf2.0 [--base-image IMAGE]

Baseline, measured in the same run: the same cases by `python -m tfdet_probe` in a container that already runs.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tfdet.base.paths import Project, find_project
from tfdet.engines import images
from tfdet.matrix.load import load_matrix

MAX_ADDED, MAX_REBUILD = 1.0, 5.0  # the promises, in seconds
SELECTION = [
    "--device",
    "cpu",
    "--source",
    "bias-add-backprop",
    "--solution",
    "none",
    "--repeats",
    "1",
    "--processes",
    "1",
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--base-image")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    project = find_project()
    matrix = load_matrix(project.matrix)
    tag = images.tag(arguments.environment)
    images.build(project, matrix, arguments.environment, arguments.base_image)
    direct, fresh = suite_seconds(tag, arguments.rounds)
    rebuild = rebuild_seconds(project, arguments.environment, arguments.base_image, arguments.rounds)
    print(f"suite in a running container  {direct:6.2f} s   (baseline, median of {arguments.rounds})")
    print(f"suite by docker run           {fresh:6.2f} s")
    print(f"docker run adds               {fresh - direct:6.2f} s   promise: <= {MAX_ADDED:g} s")
    print(f"rebuild after a change        {rebuild:6.2f} s   promise: <= {MAX_REBUILD:g} s")
    return 0 if fresh - direct <= MAX_ADDED and rebuild <= MAX_REBUILD else 1


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def command(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def suite_seconds(tag: str, rounds: int) -> tuple[float, float]:
    """Return the median seconds (in a running container, by docker run), measured alternately."""
    running = command("run", "-d", "--network", "none", "--entrypoint", "sleep", tag, "infinity")
    inside = ["exec", "--user", "10001", running, "/opt/tfdet/python", "-m", "tfdet_probe", "--out", "/tmp/records"]
    direct, fresh = [], []
    try:
        for _ in range(rounds):
            direct.append(seconds(lambda: command(*inside, *SELECTION)))
            command("exec", running, "rm", "-f", "/tmp/records")
            fresh.append(seconds(lambda: command("run", "--rm", "--network", "none", tag, *SELECTION)))
    finally:
        command("rm", "-f", running)
    return statistics.median(direct), statistics.median(fresh)


def rebuild_seconds(project: Project, key: str, base: str | None, rounds: int) -> float:
    """Return the median seconds of rebuilds, each after a change of one suite file, in a copy of the checkout."""
    matrix = load_matrix(project.matrix)
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("docker", "runtime", "tests/suite/tensorflow"):
            shutil.copytree(project.root / name, Path(folder) / name)
        copy = Project(Path(folder))
        file = next(copy.suite("tensorflow").glob("test_*.py"))
        try:
            for number in range(rounds):
                file.write_text(f"{file.read_text()}\n# {time.time()} {number}\n")
                times.append(seconds(lambda: images.build(copy, matrix, key, base)))
        finally:
            images.build(project, matrix, key, base)
    return statistics.median(times)


if __name__ == "__main__":
    raise SystemExit(main())
