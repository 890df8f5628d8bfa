"""The runner of other projects' suites reports the outcome of each test, even if the test kills its process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import suites
from virtual_device import build

TESTS = """import ctypes, os, time, unittest

class Some(unittest.TestCase):
    def test_passes(self):
        import installed.beside
    def test_fails(self):
        self.assertEqual(1, 2)
    @unittest.skip("no card")
    def test_skips(self):
        pass
    def test_multiplies(self):
        blas = ctypes.CDLL("libcublas.so.12")
        self.assertEqual(blas.cublasSetVector(1, 4, None, 1, None, 1), 0)
    def test_dies(self):
        os._exit(3)
    def test_hangs(self):
        time.sleep(60)
"""


@pytest.fixture
def command(tmp_path):
    """Return the command of a worker for a package whose tests are in a source tree."""
    installed, source = tmp_path / "installed", tmp_path / "source"
    for folder in (installed, source / "kernel_tests"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
    (source / "beside.py").touch()
    (source / "kernel_tests" / "again_test.py").write_text("from .some_test import Some as Another\n")
    (source / "kernel_tests" / "some_test.py").write_text(TESTS)
    return [sys.executable, str(suites.WORKER), "--beside", f"installed={source}"]


@pytest.fixture
def env(tmp_path):
    return {**os.environ, "LD_LIBRARY_PATH": str(Path(build()).parent), "PYTHONPATH": str(tmp_path)}


def test_every_test_is_listed_by_the_name_that_its_class_has(command, env):
    modules = ["installed.kernel_tests.again_test", "installed.kernel_tests.missing"]
    listed = subprocess.run([*command, "--list", *modules], env=env, check=True, capture_output=True, text=True)
    names = listed.stdout.split()
    assert names[:-1] == [
        f"installed.kernel_tests.some_test.Some.test_{name}"
        for name in ("dies", "fails", "hangs", "multiplies", "passes", "skips")
    ]
    assert suites.Worker(command, env, 20).run(names[-1]).how == "failed"


def test_each_test_has_its_outcome(command, env):
    """A test is "closed" if it needs a call of a vendor library, whose name is the reason."""
    worker = suites.Worker(command, env, 5)
    outcomes = {
        "passes": "passed",
        "fails": "failed",
        "skips": "skipped",
        "multiplies": "closed",
        "dies": "died",
        "hangs": "hung",
    }
    results = suites.run_all(worker, [f"installed.kernel_tests.some_test.Some.test_{name}" for name in outcomes])
    assert {name.rpartition("_")[2]: result.how for name, result in results.items()} == outcomes
    assert results["installed.kernel_tests.some_test.Some.test_multiplies"].why == "cublasSetVector"


@pytest.mark.parametrize(
    ("refused", "how"),
    [([], "failed"), (["nccl_kernel: machine code without PTX"], "failed"), (["cublasSgemm_v2"], "closed")],
)
def test_a_call_of_a_vendor_library_is_the_reason_of_a_failure(refused, how):
    assert suites.to_result("failed", "why", refused, 1).how == how
    assert suites.to_result("passed", "", refused, 1).how == "passed"


def test_only_unknown_failures_fail_the_suite(capsys):
    results = {
        "a": suites.Result("passed", "", 3),
        "b": suites.Result("failed", "x\ny"),
        "c": suites.Result("closed", "z"),
    }
    assert suites.report(results, {}) == 1
    assert "NOT KNOWN: y" in capsys.readouterr().out
    assert suites.report(results, {"a reason": ["b"]}) == 0
    assert "1 of 2 passed (50.0 %; 1 of them ran kernels of it" in capsys.readouterr().out
    assert (
        suites.report(results, json.loads('{"a reason": ["a", "b"]}')) == 1
    )  # `a` passes, though it is a known failure
