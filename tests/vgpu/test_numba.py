"""A few of numba's own CUDA tests; numba_suite.py runs all of them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "numba_suite.py"


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    return tmp_path_factory.mktemp("numba") / "venv"  # the first test creates it, the next one uses it


@pytest.mark.parametrize(
    ("only", "least"), [("cudapy.test_warp_ops", 15), ("test_atomics.TestCudaAtomics.test_atomic_add", 13)]
)
def test_numbas_own_tests_pass(venv, tmp_path, only, least):
    results = tmp_path / "results.json"
    options = ["--python", sys.executable, "--venv", str(venv), "--only", only, "--results", str(results)]
    process = subprocess.run([sys.executable, str(SUITE), *options], capture_output=True, text=True, timeout=600)
    assert process.returncode == 0, process.stdout + process.stderr
    tests = json.loads(results.read_text())
    assert all(test["launches"] for test in tests.values()), "each ran a kernel of its own"
    assert len(tests) >= least and {test["how"] for test in tests.values()} == {"passed"}
