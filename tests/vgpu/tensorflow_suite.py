"""TensorFlow's own kernel tests on GPU:0 of the virtual GPU: python tests/vgpu/tensorflow_suite.py --source DIR tf2.0

DIR is the source tree of that release, for the wheels leave their tests out, and none is kept here:

    git clone --depth 1 --branch v2.0.0 https://github.com/tensorflow/tensorflow DIR

Not a part of the suites: it takes half an hour and more.  Runs FILES in the environment's GPU build (made on first use,
as by `tfdet run --device vgpu`), and prints how many tests pass, how many of those ran kernels of the device, and each
other one with its reason.  A test that fails once a closed library refused a call is counted apart, with the call.
Other failures that are known stand in tensorflow_others.json, by reason; any that is not there makes the command fail.
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
OTHERS = HERE / "tensorflow_others.json"
PACKAGE = "tensorflow.python"
# What a release has of these, wherever it keeps them (folders differ).
FILES = [
    *("segment_reduction_ops_test", "scatter_ops_test", "scatter_nd_ops_test", "batch_scatter_ops_test"),
    *("image_ops_test", "image_grad_test", "reduction_ops_test", "softmax_op_test"),
    *("gather_op_test", "gather_nd_op_test", "batch_gather_op_test", "bincount_op_test"),
]
LIMIT = 1800  # seconds of a test: some check gradients number by number
AVAILABLE = "import tensorflow as tf; assert tf.test.is_gpu_available(), 'TensorFlow sees no GPU'"


def modules(source: Path) -> list[str]:
    """The names of the release's test modules."""
    folder = source.joinpath(*PACKAGE.split("."))
    found = [*folder.glob("ops/*_test.py"), *folder.glob("kernel_tests/**/*_test.py")]
    names = sorted(path for path in found if path.stem in FILES and path.parent.name != "v1_compat_tests")
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
    env = {**vgpu.environ(vgpu.library_folder(project), chosen.schedule), "TF_CPP_MIN_LOG_LEVEL": "3"}
    env["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    subprocess.run([python, "-c", AVAILABLE], env=env, check=True, stderr=subprocess.DEVNULL)
    beside = f"{PACKAGE}={chosen.source.resolve().joinpath(*PACKAGE.split('.'))}"
    command = [python, str(suites.WORKER), "--beside", beside]
    listed = subprocess.run([*command, "--list", *modules(chosen.source)], env=env, check=True, capture_output=True)
    # A context manager that unittest takes for a test.
    tests = [test for test in listed.stdout.decode().split() if not test.endswith(".test_session")]
    wanted = [test for test in tests if chosen.only in test]
    results = suites.run_all(suites.Worker(command, env, LIMIT, chosen.source), wanted)
    if chosen.results:
        suites.write(results, chosen.results)
    known = json.loads(OTHERS.read_text()).get(chosen.environment, {}) if OTHERS.exists() else {}
    return suites.report(results, known)


if __name__ == "__main__":
    sys.exit(main())
