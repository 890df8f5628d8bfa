"""Speed and memory of `tfdet audit` on whole wheels, and its results compared with nvdisasm's, for every instruction.

Usage: python benchmarks/audit.py speed FOLDER [ARCH ...]       libraries of an unpacked wheel; default: sm_70, then all
       python benchmarks/audit.py exact LIBRARY ARCH [ARCH ...]
Promises: TF 1.14's sm_70 code in <= 2 s and all architectures in <= 20 s on 2 cores, <= 1.5 GiB, >= 100 times faster
than `cuobjdump -sass` piped to grep in the same run; no atomic missed, none reported that does not exist.  Files are
read once before, so that they are in the page cache.  Baseline and reference are cuobjdump and nvdisasm of CUDA 12.4,
the last version that supports sm_70 (from the wheel that the tests use).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "host"))
import audit_oracle

from tfdet.audit.scan import scan_library

SCAN = """
import resource, sys, time
from pathlib import Path
start = time.perf_counter()
from tfdet.audit.scan import scan_library
archs = set(sys.argv[1].split(",")) - {"all"} or None
kernels = sum(len(scan_library(Path(path), path, archs).kernels) for path in sys.argv[2:])
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(kernels, time.perf_counter() - start, peak / 2**20)
"""


def libraries(folder: Path) -> list[Path]:
    """Return all shared libraries below `folder`, and read them into the page cache."""
    paths = sorted(path for path in folder.rglob("*.so*") if path.is_file() and not path.is_symlink())
    for path in paths:
        with path.open("rb") as file:
            while file.read(1 << 24):
                pass
    return paths


def measure(paths: list[Path], archs: str) -> float:
    """Measure a scan in a new process, with imports; print the figures, and return the wall seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", SCAN, archs, *map(str, paths)]
    kernels, seconds, gib = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{archs}: {len(paths)} libraries, {kernels} kernels with atomics: {float(seconds):.2f} s "
          f"({cpu:.2f} s of CPU), {float(gib):.2f} GiB in the largest process")  # fmt: skip
    return float(seconds)


def baseline(paths: list[Path], arch: str) -> float:
    """Return the seconds of `cuobjdump -sass` piped to grep on the libraries that contain an architecture."""
    tool = audit_oracle.tool("cuobjdump")
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    start = time.perf_counter()
    for path in paths:
        if scan_library(path, path.name, set()).sass:  # the architectures that it has machine code for
            command = f"{tool} -sass -arch {arch} '{path}' | grep -cE 'ATOM|RED'"
            subprocess.run(command, shell=True, env=environment, stdout=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def speed(folder: Path, archs: list[str]) -> None:
    paths = libraries(folder)
    for arch in archs or ["sm_70", "all"]:
        tfdet_seconds = min(measure(paths, arch) for _ in range(3))
        if arch.startswith("sm_"):
            baseline_seconds = baseline(paths, arch)
            ratio = baseline_seconds / tfdet_seconds
            print(f"  cuobjdump -sass | grep: {baseline_seconds:.1f} s, {ratio:.0f} times as long")


def exact(library: Path, archs: list[str]) -> bool:
    """Compare the atomics of all functions with those in nvdisasm's output; return whether they are equal."""
    is_equal = True
    for arch in archs:
        with tempfile.TemporaryDirectory() as folder:
            extract = [audit_oracle.tool("cuobjdump"), "-xelf", "all", "-arch", arch, library.resolve()]
            subprocess.run(extract, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with ThreadPoolExecutor(audit_oracle.cores()) as pool:
                parts = pool.map(count_atomics, sorted(Path(folder).glob("*.cubin")))
                expected = sum(parts, Counter[tuple[str, str]]())
        counted = Counter({(kernel.name, kind): count for kernel in scan_library(library, "", {arch}).kernels
                         for kind, count in kernel.atomics.items()})  # fmt: skip
        missed, invented = expected - counted, counted - expected
        functions = len({name for name, _ in expected})
        print(f"{library.name} {arch}: {expected.total()} atomic instructions in {functions} functions compared, "
              f"{missed.total()} missed, {invented.total()} invented")  # fmt: skip
        is_equal = is_equal and not missed and not invented
    return is_equal


def count_atomics(cubin: Path) -> Counter[tuple[str, str]]:
    """Return {(function, kind): number} of the atomics in nvdisasm's output."""
    instructions = audit_oracle.disassemble(cubin)
    return Counter(
        (name, audit_oracle.kind_of_atomic(text)) for name, _, text in instructions if audit_oracle.ATOMIC.match(text)
    )


def main() -> None:
    match sys.argv[1:]:
        case ["speed", folder, *archs]:
            speed(Path(folder), archs)
        case ["exact", library, *archs] if archs:
            sys.exit(not exact(Path(library), archs))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
