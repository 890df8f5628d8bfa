"""The bundle of TensorFlow 2.21 for compute capability 9.0: parts, seconds, and whether trimming changed a digest.

    python benchmarks/bundle.py [--python 3.12] [--keep DIR] [--cases SOURCE ...]

Promises: <= 8 parts of 60 MiB with the official CUDA 12 libraries, <= 4 with the host's own cuBLAS and cuDNN; bundling
in <= 15 minutes on 2 cores; from the parts to the first result in <= 90 s.  Baseline: the same cases in an environment
of the same packages, nothing trimmed.  Bundling is timed with an empty cache of compressed members (--warm: as it is);
the packages are brought first, as a network's speed says nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from tfdet.base.paths import Project, find_project
from tfdet.bundle import build
from tfdet.bundle.contents import TrimOptions
from tfdet.engines.interpreters import find_python
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import write_plan
from tfdet.store.records import read_records

PARTS, PARTS_HOST, BUNDLING, FIRST = 8, 4, 900.0, 90.0  # the promises; seconds
CASES = [
    "bias-add-backprop",
    "segment-sum",
    "softmax-xent",
    "resize-bilinear-backprop",
    "gather-backprop",
    "reduce-sum",
]
OFFICIAL = TrimOptions((9, 0), ("cufft",))
HOST = TrimOptions((9, 0), ("cufft", "cusolver", "cusparse"), ("cublas", "cudnn"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12")
    parser.add_argument("--keep", type=Path, help="folder for the bundles (default: a temporary one)")
    parser.add_argument("--warm", action="store_true", help="take members that are compressed already")
    parser.add_argument("--cases", nargs="+", default=CASES, metavar="SOURCE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        return measure(find_project(), arguments, arguments.keep or Path(temporary))


def measure(project: Project, arguments: argparse.Namespace, folder: Path) -> int:
    order = build.BundleSpec("tf2.21", "gpu", arguments.python, trim=OFFICIAL)
    matrix = load_matrix(project.matrix)
    site = build.install(project, matrix.environment("tf2.21"), order, print)
    cache = None if arguments.warm else folder / "cache"
    official, wall, cpu = bundled(project, order, folder / "official", cache)
    host, _, _ = bundled(project, replace(order, trim=HOST), folder / "host", cache)
    first = first_result(folder / "official", arguments.python)
    same, cells = compared(project, folder / "official", site, arguments.python, arguments.cases)
    size, size_host = sum(official.parts) / 2**20, sum(host.parts) / 2**20
    print(f"official CUDA 12 libraries  {len(official.parts)} parts, {size:.1f} MiB   promise: <= {PARTS}")
    print(f"host's cuBLAS and cuDNN     {len(host.parts)} parts, {size_host:.1f} MiB   promise: <= {PARTS_HOST}")
    print(f"bundling                    {wall:.0f} s, {cpu:.0f} s of CPU   promise: <= {BUNDLING:g} s on 2 cores")
    print(f"parts to the first result   {first:.1f} s   promise: <= {FIRST:g} s")
    print(f"trimmed against untrimmed   {same} of {cells} records have the same digests   promise: all")
    good = len(official.parts) <= PARTS and len(host.parts) <= PARTS_HOST and first <= FIRST and same == cells
    return 0 if good and (arguments.warm or wall <= BUNDLING) else 1


def bundled(
    project: Project, order: build.BundleSpec, out: Path, cache: Path | None
) -> tuple[build.BuiltBundle, float, float]:
    """(what was made, seconds, seconds of CPU)."""
    matrix = load_matrix(project.matrix)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    if cache is None:
        made = build.make_bundle(project, matrix, order, out, print)
    else:
        with patch.object(build, "members_cache", lambda: cache):
            made = build.make_bundle(project, matrix, order, out, print)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return made, time.perf_counter() - start, cpu


def first_result(folder: Path, python: str) -> float:
    """Seconds from the parts to the first record, unpacking and the first start of TensorFlow among them."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as into:
        records = Path(into, "records.jsonl")
        start = time.perf_counter()
        few = ["--source", "bias-add-backprop", "--solution", "none", "--out", str(records)]
        process = subprocess.Popen([*command(folder, python, Path(into, "unpacked")), *few])
        while process.poll() is None and not (records.exists() and records.stat().st_size):
            time.sleep(0.1)
        seconds = time.perf_counter() - start
        process.send_signal(signal.SIGTERM)
        process.wait()
    return seconds


def command(folder: Path, python: str, into: Path) -> list[str]:
    return [str(find_python(python)), str(folder / "unbundle.py"), "run", "--device", "cpu", "--target", str(into)]


def run(folder: Path, python: str, into: Path, records: Path, arguments: list[str]) -> None:
    done = subprocess.run([*command(folder, python, into), "--out", str(records), *arguments], check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"unbundle.py run ended with {done.returncode}")


def compared(project: Project, folder: Path, site: Path, python: str, sources: list[str]) -> tuple[int, int]:
    """(records of the same digests, records) of the bundle and of the packages that it was made of."""
    few = [argument for source in sources for argument in ("--source", source)]
    few += ["--solution", "none", "--solution", "TEOD", "--repeats", "3", "--processes", "1"]
    trimmed, whole = folder.parent / "trimmed.jsonl", folder.parent / "whole.jsonl"
    trimmed.unlink(missing_ok=True)
    whole.unlink(missing_ok=True)
    run(folder, python, folder.parent / "unpacked", trimmed, few)
    plan = write_plan(load_matrix(project.matrix), "tf2.21", folder.parent / "plan.json")
    suite = str(project.suite("tensorflow"))
    probe = [str(find_python(python)), "-m", "tfdet_probe", "--plan", str(plan), "--suite", suite]
    path = os.pathsep.join([str(project.runtime), str(site)])
    subprocess.run([*probe, "--out", str(whole), "--device", "cpu", *few], env={**os.environ, "PYTHONPATH": path},
                   check=False)  # fmt: skip
    one, two = ({(r.case, r.solution): json.dumps([r.observation, r.digests]) for r in read_records(path)}
                for path in (trimmed, whole))  # fmt: skip
    return sum(one[key] == two.get(key) for key in one), max(len(one), len(two))


if __name__ == "__main__":
    raise SystemExit(main())
