"""numba's own CUDA tests on the virtual GPU: python tests/vgpu/numba_suite.py [--only TEXT]

The command installs numba with the compilers that NVIDIA publishes into a virtual environment of its own (0.6 GB,
removed at the end), and takes about half an hour.  It prints how many of numba's tests pass, and each other one with
its reason.  numba_others.json lists the known failures by reason; any other failure makes the command fail.
No GPU library is installed: libcuda and libcudart are the virtual ones.  test_numba.py runs a few of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vgpu"))
import build as builder
import suites

HERE = Path(__file__).resolve().parent
KNOWN_FAILURES = HERE / "numba_others.json"
PACKAGES = [
    *("numba==0.61.2", "nvidia-cuda-nvcc-cu12==12.4.131", "nvidia-cuda-nvrtc-cu12==12.4.127"),
    *("scipy", "cffi", "psutil"),  # what some of the tests import
]
LIMIT = 300  # seconds per test
CAPABILITY = "90"


def install(venv: Path, python: str) -> Path:
    """Create an environment with numba, and return its interpreter."""
    subprocess.run([python, "-m", "venv", str(venv)], check=True)
    interpreter = venv / "bin" / "python"
    subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return interpreter


def environment(python: Path, library: Path) -> dict[str, str]:
    """Return the environment variables with which numba finds the compilers and the virtual GPU."""
    nvidia = next(python.parents[1].glob("lib/python*/site-packages/nvidia"))
    toolkit = nvidia / "cuda_nvcc"
    # numba wants them where an installed toolkit has them, and with versions in their names.
    link(toolkit / "nvvm" / "lib64" / "libnvvm.so.4", toolkit / "nvvm" / "lib64" / "libnvvm.so")
    link(toolkit / "lib64" / "libcudart.so.12", library / "libcudart.so.12")
    for library_file in (nvidia / "cuda_nvrtc" / "lib").glob("libnvrtc*"):
        link(toolkit / "lib64" / library_file.name, library_file)
    # numba checks that this file exists; its functions are built into the device.
    (toolkit / "lib64" / "libcudadevrt.a").touch()
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{library}:{nvidia / 'cuda_nvrtc' / 'lib'}",
        "CUDA_HOME": str(toolkit),
        "VGPU_COMPUTE_CAPABILITY": CAPABILITY,
        "VGPU_MAX_INSTRUCTIONS": "2000000000",
    }


def link(name: Path, target: Path) -> None:
    """Make `name` a symbolic link to `target`, and replace an old one."""
    name.parent.mkdir(exist_ok=True)
    name.unlink(missing_ok=True)
    name.symlink_to(target)


def list_tests(python: Path, env: dict[str, str]) -> list[str]:
    """Return the names of all of numba's CUDA tests."""
    command = [str(python), "-m", "numba.runtests", "--list", "numba.cuda.tests"]
    process = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return [line for line in process.stdout.split() if line.startswith("numba.cuda.tests.")]


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
        tests = [test for test in list_tests(python, env) if chosen.only in test]
        results = suites.run_all(suites.Worker([str(python), str(suites.WORKER)], env, LIMIT), tests)
    if chosen.results:
        suites.write(results, chosen.results)
    return suites.report(results, json.loads(KNOWN_FAILURES.read_text()))


if __name__ == "__main__":
    sys.exit(main())
