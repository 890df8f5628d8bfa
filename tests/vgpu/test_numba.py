"""A few of numba's own CUDA tests; numba_suite.py runs them all."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "numba_suite.py"


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    return tmp_path_factory.mktemp("numba") / "venv"  # made by the first, used by the next


@pytest.mark.parametrize(
    ("only", "least"), [("cudapy.test_warp_ops", 15), ("test_atomics.TestCudaAtomics.test_atomic_add", 13)]
)
def test_numbas_own_tests_pass(venv, tmp_path, only, least):
    results = tmp_path / "results.json"
    told = ["--python", sys.executable, "--venv", str(venv), "--only", only, "--results", str(results)]
    done = subprocess.run([sys.executable, str(SUITE), *told], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(results.read_text())
    assert all(one["launches"] for one in found.values()), "each ran a kernel of its own"
    assert len(found) >= least and {one["how"] for one in found.values()} == {"passed"}
