"""numba's own CUDA tests on the virtual GPU: python tests/vgpu/numba_suite.py [--only TEXT]

test_numba.py runs a few of them.  It installs numba with the compilers that NVIDIA publishes into a virtual
environment of its own (0.6 GB, removed at the end), and takes about half an hour.  Prints how many of numba's tests
pass, and every other one with its reason.  Those that are known stand in numba_others.json, by reason; any that is not
among them makes the command fail.  No GPU library is installed: libcuda and libcudart are the virtual ones.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vgpu"))
import build as builder

HERE = Path(__file__).resolve().parent
OTHERS = HERE / "numba_others.json"
PACKAGES = [
    *("numba==0.61.2", "nvidia-cuda-nvcc-cu12==12.4.131", "nvidia-cuda-nvrtc-cu12==12.4.127"),
    *("scipy", "cffi", "psutil"),  # what some of the tests import
]
LIMIT = 300  # seconds of a test
CAPABILITY = "90"


def install(venv: Path, python: str) -> Path:
    """The interpreter of a new environment with numba in it."""
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    made = venv / "bin" / "python"
    subprocess.run([str(made), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return made


def environment(python: Path, library: Path) -> dict[str, str]:
    """In which numba finds the compilers and the virtual GPU."""
    nvidia = next(python.parents[1].glob("lib/python*/site-packages/nvidia"))
    toolkit = nvidia / "cuda_nvcc"
    # numba wants them where an installed toolkit has them, and with versions in their names.
    link(toolkit / "nvvm" / "lib64" / "libnvvm.so.4", toolkit / "nvvm" / "lib64" / "libnvvm.so")
    link(toolkit / "lib64" / "libcudart.so.12", library / "libcudart.so.12")
    for found in (nvidia / "cuda_nvrtc" / "lib").glob("libnvrtc*"):
        link(toolkit / "lib64" / found.name, found)
    # It looks whether this one exists; its functions are the device's own.
    (toolkit / "lib64" / "libcudadevrt.a").touch()
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{library}:{nvidia / 'cuda_nvrtc' / 'lib'}",
        "CUDA_HOME": str(toolkit),
        "VGPU_CAPABILITY": CAPABILITY,
        "VGPU_LIMIT": "2000000000",
    }


def link(name: Path, target: Path) -> None:
    """`name` leads to `target`, wherever it led before."""
    name.parent.mkdir(exist_ok=True)
    name.unlink(missing_ok=True)
    name.symlink_to(target)


class Worker:
    """Runs one test after the other in a process, replaced where one hangs, kills it or leaves the device dead."""

    def __init__(self, python: Path, env: dict[str, str]):
        self.command, self.env = [str(python), __file__, "--worker"], env
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, test: str) -> tuple[str, str]:
        """passed, skipped, failed, hung or died, and why."""
        if self.process is None or self.process.poll() is not None:
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=null, env=self.env)
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(test.encode() + b"\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], LIMIT)[0]:
            self.end()
            return "hung", f"no end within {LIMIT} s"
        line = self.process.stdout.readline()
        if not line:
            return "died", f"the process ended with {self.process.wait()}"
        how, why, dead = json.loads(line)
        if dead:
            self.end()
        return how, why

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


def tests_of(python: Path, env: dict[str, str]) -> list[str]:
    """The names of all of numba's CUDA tests."""
    command = [str(python), "-m", "numba.runtests", "--list", "numba.cuda.tests"]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return [line for line in done.stdout.split() if line.startswith("numba.cuda.tests.")]


def work() -> None:
    """In a worker: runs the tests that standard input names, and says of each how it went."""
    import ctypes
    import unittest

    say = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print is not for who reads the results
    for line in sys.stdin:
        result = unittest.TestResult()
        unittest.TestSuite([unittest.defaultTestLoader.loadTestsFromName(line.strip())]).run(result)
        wrong = result.errors + result.failures
        if wrong:
            answer = ["failed", wrong[0][1]]
        elif result.skipped:
            answer = ["skipped", result.skipped[0][1]]
        else:
            answer = ["passed", ""]
        faulted = ctypes.CDLL("libcuda.so.1").cuCtxSynchronize() != 0  # nothing runs in this process any more
        say.write(json.dumps([*answer, faulted]) + "\n")
        say.flush()


def known() -> dict[str, str]:
    """The reason for each test that does not pass."""
    return {test: reason for reason, tests in json.loads(OTHERS.read_text()).items() for test in tests}


def report(results: dict[str, tuple[str, str]]) -> int:
    """Prints what a maintainer wants to know; 1 where a test fails that is not known to."""
    reasons = known()
    counts = collections.Counter(how for how, _ in results.values())
    ran = len(results) - counts["skipped"]
    for test, (how, why) in results.items():
        if how in ("passed", "skipped"):
            continue
        last = why.strip().splitlines()[-1] if why.strip() else ""
        print(f"{how:7} {test}: {reasons.get(test, 'NOT KNOWN: ' + last)}")
    for why, count in collections.Counter(why for how, why in results.values() if how == "skipped").most_common():
        print(f"skipped {count:4}: {why}")
    new = [test for test, (how, _) in results.items() if how not in ("passed", "skipped") and test not in reasons]
    mended = [test for test in reasons if results.get(test, ("", ""))[0] == "passed"]
    for test in mended:
        print(f"passes now, and stands among the others: {test}")
    passed = counts["passed"]
    print(f"{passed} of {ran} passed ({100 * passed / max(ran, 1):.1f} %), {counts['skipped']} skipped by themselves")
    return 1 if new or mended else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="makes the environment")
    parser.add_argument("--venv", type=Path, help="made there and kept, or made there before")
    parser.add_argument("--only", default="", help="tests whose names hold this text")
    parser.add_argument("--results", type=Path, help="where to put every test's result as JSON")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        venv = (chosen.venv or Path(folder) / "venv").resolve()
        python = venv / "bin" / "python" if (venv / "bin").exists() else install(venv, chosen.python)
        env = environment(python, builder.build(builder.cache()))
        worker = Worker(python, env)
        results = {}
        for test in tests_of(python, env):
            if chosen.only in test:
                results[test] = worker.run(test)
                if results[test][0] not in ("passed", "skipped"):
                    print(*results[test][:1], test, flush=True)
        worker.end()
    if chosen.results:
        chosen.results.write_text(json.dumps(results, indent=1))
    return report(results)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        work()
    else:
        sys.exit(main())
