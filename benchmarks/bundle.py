"""Size, time and correctness of the bundle of TensorFlow 2.21 for compute capability 9.0.

    python benchmarks/bundle.py [--python 3.12] [--keep DIR] [--cases SOURCE ...]

Promises: <= 8 parts of 60 MiB with the official CUDA 12 libraries, <= 4 with the host's own cuBLAS and cuDNN; bundling
in <= 15 minutes on 2 cores; from the parts to the first result in <= 90 s; trimming changes no digest.  Baseline: the
same cases in an environment of the same packages, nothing trimmed.  Bundling is timed with an empty cache of compressed
members (--warm: with the existing cache), and after the packages are downloaded.
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

PARTS, PARTS_HOST, BUNDLING, FIRST_RESULT = 8, 4, 900.0, 90.0  # the promises; seconds
CASES = [
    "bias-add-backprop",
    "segment-sum",
    "softmax-xent",
    "resize-bilinear-backprop",
    "gather-backprop",
    "reduce-sum",
]
OFFICIAL_LIBRARIES = TrimOptions((9, 0), ("cufft",))
HOST_LIBRARIES = TrimOptions((9, 0), ("cufft", "cusolver", "cusparse"), ("cublas", "cudnn"))


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
    spec = build.BundleSpec("tf2.21", "gpu", arguments.python, trim=OFFICIAL_LIBRARIES)
    matrix = load_matrix(project.matrix)
    packages = build.install(project, matrix.environment("tf2.21"), spec, print)
    cache = None if arguments.warm else folder / "cache"
    official, wall, cpu = make_timed_bundle(project, spec, folder / "official", cache)
    host, _, _ = make_timed_bundle(project, replace(spec, trim=HOST_LIBRARIES), folder / "host", cache)
    first_result_seconds = first_result(folder / "official", arguments.python)
    equal, count = compare_with_untrimmed(project, folder / "official", packages, arguments.python, arguments.cases)
    size, size_host = sum(official.parts) / 2**20, sum(host.parts) / 2**20
    print(f"official CUDA 12 libraries  {len(official.parts)} parts, {size:.1f} MiB   promise: <= {PARTS}")
    print(f"host's cuBLAS and cuDNN     {len(host.parts)} parts, {size_host:.1f} MiB   promise: <= {PARTS_HOST}")
    print(f"bundling                    {wall:.0f} s, {cpu:.0f} s of CPU   promise: <= {BUNDLING:g} s on 2 cores")
    print(f"parts to the first result   {first_result_seconds:.1f} s   promise: <= {FIRST_RESULT:g} s")
    print(f"trimmed against untrimmed   {equal} of {count} records have the same digests   promise: all")
    is_kept = (
        len(official.parts) <= PARTS
        and len(host.parts) <= PARTS_HOST
        and first_result_seconds <= FIRST_RESULT
        and equal == count
    )
    return 0 if is_kept and (arguments.warm or wall <= BUNDLING) else 1


def make_timed_bundle(
    project: Project, spec: build.BundleSpec, out: Path, cache: Path | None
) -> tuple[build.BuiltBundle, float, float]:
    """Make a bundle; return (bundle, seconds, seconds of CPU)."""
    matrix = load_matrix(project.matrix)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    if cache is None:
        bundle = build.make_bundle(project, matrix, spec, out, print)
    else:
        with patch.object(build, "compressed_members_cache", lambda: cache):
            bundle = build.make_bundle(project, matrix, spec, out, print)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return bundle, time.perf_counter() - start, cpu


def first_result(folder: Path, python: str) -> float:
    """Return the seconds from the parts to the first record, with unpacking and the first start of TensorFlow."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        records = Path(scratch, "records.jsonl")
        start = time.perf_counter()
        selection = ["--source", "bias-add-backprop", "--solution", "none", "--out", str(records)]
        process = subprocess.Popen([*command(folder, python, Path(scratch, "unpacked")), *selection])
        while process.poll() is None and not (records.exists() and records.stat().st_size):
            time.sleep(0.1)
        seconds = time.perf_counter() - start
        process.send_signal(signal.SIGTERM)
        process.wait()
    return seconds


def command(folder: Path, python: str, target: Path) -> list[str]:
    return [str(find_python(python)), str(folder / "unbundle.py"), "run", "--device", "cpu", "--target", str(target)]


def run(folder: Path, python: str, target: Path, records: Path, arguments: list[str]) -> None:
    process = subprocess.run([*command(folder, python, target), "--out", str(records), *arguments], check=False)
    if process.returncode not in (0, 1):
        sys.exit(f"unbundle.py run ended with {process.returncode}")


def compare_with_untrimmed(
    project: Project, folder: Path, packages: Path, python: str, sources: list[str]
) -> tuple[int, int]:
    """Run cases in the bundle and in its packages; return (records with equal digests, records).

    Without a solution, and with TEOD, which is tf.config.experimental.enable_op_determinism().
    """
    selection = [argument for source in sources for argument in ("--source", source)]
    selection += ["--solution", "none", "--solution", "TEOD", "--repeats", "3", "--processes", "1"]
    trimmed, untrimmed = folder.parent / "trimmed.jsonl", folder.parent / "whole.jsonl"
    trimmed.unlink(missing_ok=True)
    untrimmed.unlink(missing_ok=True)
    run(folder, python, folder.parent / "unpacked", trimmed, selection)
    plan = write_plan(load_matrix(project.matrix), "tf2.21", folder.parent / "plan.json")
    suite = str(project.suite("tensorflow"))
    probe = [str(find_python(python)), "-m", "tfdet_probe", "--plan", str(plan), "--suite", suite]
    path = os.pathsep.join([str(project.runtime), str(packages)])
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([*probe, "--out", str(untrimmed), "--device", "cpu", *selection], env=environment, check=False)
    before, after = digests_by_case(untrimmed), digests_by_case(trimmed)
    return sum(after[key] == before.get(key) for key in after), max(len(after), len(before))


def digests_by_case(path: Path) -> dict[tuple[str, str], str]:
    records = read_records(path)
    return {(record.case, record.solution): json.dumps([record.observation, record.digests]) for record in records}


if __name__ == "__main__":
    raise SystemExit(main())
