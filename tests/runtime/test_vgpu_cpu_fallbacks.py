"""Whole programs on the virtual GPU in a stock TensorFlow: its kernels, and CPU fallbacks for cuBLAS and cuDNN."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tfdet.base.errors import RunFailedError
from tfdet.base.paths import Project
from tfdet.engines import vgpu
from tfdet.engines.venv import VenvEngine
from tfdet.matrix.load import load_matrix

PROGRAM = Path(__file__).with_name("vgpu_training_checks.py")
# {network: calls of vendor libraries that it makes}
CLOSED = {
    "dense": {"cublasSgemm_v2"},
    "convolutions": {
        "cublasSgemm_v2",
        "cudnnBatchNormalizationBackwardEx",
        "cudnnBatchNormalizationForwardTrainingEx",
        "cudnnConvolutionBackwardData",
        "cudnnConvolutionBackwardFilter",
        "cudnnConvolutionForward",
        "cudnnPoolingBackward",
        "cudnnPoolingForward",
    },
}


def run_training(checkout: Project, kind: str, *, cpu_fallbacks: bool) -> subprocess.CompletedProcess[str]:
    """Train that kind of network on the virtual GPU, in a random order of threads, in TensorFlow 2.0's GPU build."""
    try:
        python = VenvEngine(checkout).interpreter(
            "tf2.0", load_matrix(checkout.matrix).environment("tf2.0"), "gpu", without_vendor_libraries=True
        )
    except RunFailedError as error:
        if "no CPython" in error.cause and not os.environ.get("CI"):
            pytest.skip(error.cause)
        raise
    environ = vgpu.environ(vgpu.library_folder(checkout), "random:7", cpu_fallbacks=cpu_fallbacks)
    return subprocess.run([str(python), str(PROGRAM), kind], env=environ, capture_output=True, text=True, timeout=900)


@pytest.mark.parametrize("kind", CLOSED)
def test_training_gives_the_result_of_the_cpu(checkout: Project, kind: str) -> None:
    done = run_training(checkout, kind, cpu_fallbacks=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)[kind] < 1e-5  # the largest difference from the CPU
    calls = {line.split()[1] for line in done.stderr.splitlines() if "is computed by a CPU fallback" in line}
    assert calls >= CLOSED[kind]
    assert "not on the virtual GPU" not in done.stderr


def test_without_cpu_fallbacks_the_missing_call_is_named(checkout: Project) -> None:
    done = run_training(checkout, "dense", cpu_fallbacks=False)
    assert done.returncode == 1
    assert "NotImplementedError: cublasSgemm_v2 is not on the virtual GPU" in done.stderr
