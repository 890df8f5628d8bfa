"""TensorFlow's own kernel tests on GPU:0 of the virtual GPU: python tests/vgpu/tensorflow_suite.py --source DIR tf2.0

tf2.0 is an environment of matrix/: a release with pinned software.  DIR is the release's source tree, as wheels leave
the tests out:

    git clone --depth 1 --branch v2.0.0 https://github.com/tensorflow/tensorflow DIR

The command is not a part of the test suite: it takes half an hour and more.  It runs FILES in the environment's GPU
build (made on first use, as by `tfdet run --device vgpu`), and prints how many tests pass, how many of those ran
kernels of the device, and each other one with its reason.  A test that fails after a vendor library refused a call is
counted separately, with the call.  tensorflow_others.json lists other known failures by reason; any failure besides
makes the command fail.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import suites

from tfdet.base.paths import find_project
from tfdet.engines import vgpu
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix

HERE = Path(__file__).resolve().parent
KNOWN_FAILURES = HERE / "tensorflow_others.json"
PACKAGE = "tensorflow.python"
# Test modules, in whichever folder a release has them.
FILES = [
    *("segment_reduction_ops_test", "scatter_ops_test", "scatter_nd_ops_test", "batch_scatter_ops_test"),
    *("image_ops_test", "image_grad_test", "reduction_ops_test", "softmax_op_test"),
    *("gather_op_test", "gather_nd_op_test", "batch_gather_op_test", "bincount_op_test"),
]
LIMIT = 1800  # seconds per test: some check gradients number by number
AVAILABLE = "import tensorflow as tf; assert tf.test.is_gpu_available(), 'TensorFlow sees no GPU'"


def modules(source: Path) -> list[str]:
    """Return the names of the release's test modules."""
    folder = source.joinpath(*PACKAGE.split("."))
    files = [*folder.glob("ops/*_test.py"), *folder.glob("kernel_tests/**/*_test.py")]
    names = sorted(path for path in files if path.stem in FILES and path.parent.name != "v1_compat_tests")
    return [".".join((PACKAGE, *path.relative_to(folder).with_suffix("").parts)) for path in names]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("environment", help="tf2.0")
    parser.add_argument("--source", type=Path, required=True, help="the release's source tree")
    parser.add_argument("--schedule", default="serial")
    parser.add_argument("--only", default="", help="tests whose names hold this text")
    parser.add_argument("--results", type=Path, help="where to put every test's result as JSON")
    chosen = parser.parse_args()
    project = find_project()
    environment = load_matrix(project.matrix).environments[chosen.environment]
    python = str(VenvEngine(project).interpreter(chosen.environment, environment, "gpu", without_vendor_libraries=True))
    # The schedule is the order in which the virtual GPU runs blocks and warps.
    env = {**vgpu.environ(vgpu.library_folder(project), chosen.schedule), "TF_CPP_MIN_LOG_LEVEL": "3"}
    env["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    subprocess.run([python, "-c", AVAILABLE], env=env, check=True, stderr=subprocess.DEVNULL)
    extension = f"{PACKAGE}={chosen.source.resolve().joinpath(*PACKAGE.split('.'))}"
    command = [python, str(suites.WORKER), "--beside", extension]
    listed = subprocess.run([*command, "--list", *modules(chosen.source)], env=env, check=True, capture_output=True)
    # `test_session` is a context manager that unittest takes for a test.
    tests = [test for test in listed.stdout.decode().split() if not test.endswith(".test_session")]
    selected = [test for test in tests if chosen.only in test]
    results = suites.run_all(suites.Worker(command, env, LIMIT, chosen.source), selected)
    if chosen.results:
        suites.write(results, chosen.results)
    known_failures = (
        json.loads(KNOWN_FAILURES.read_text()).get(chosen.environment, {}) if KNOWN_FAILURES.exists() else {}
    )
    return suites.report(results, known_failures)


if __name__ == "__main__":
    sys.exit(main())
