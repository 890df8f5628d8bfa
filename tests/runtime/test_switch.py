"""patch(), enable_determinism() and disable() in real TensorFlows, old and new."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfdet.base.paths import Project

CHECKS = Path(__file__).with_name("switch_checks.py")
CUDNN, OPS, FRONTEND = "TF_CUDNN_DETERMINISTIC", "TF_DETERMINISTIC_OPS", "TF_CUDNN_USE_FRONTEND"


def expect(*variables: str, teod: bool = False, patch: bool = False) -> dict[str, Any]:
    return {"environment": dict.fromkeys(variables, "1"), "teod": teod, "patch": patch}


# What documents say of each version (matrix/solutions), not what the code says.
VERSIONS = {
    "tf1.13.1": expect(),
    "tf1.14": expect(CUDNN, patch=True),
    "tf1.15": expect(CUDNN, patch=True),
    "tf2.0": expect(CUDNN, patch=True),
    "tf2.4": expect(OPS),
    "tf2.6": expect(OPS, FRONTEND),
    "tf2.8": expect(teod=True),
    "tf2.15": expect(teod=True),
    "tf2.21": expect(teod=True),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", VERSIONS)
def test_the_switch(checkout: Project, tf_python: Callable[[str], Path], key: str) -> None:
    done = subprocess.run(
        [tf_python(key), CHECKS, json.dumps(VERSIONS[key])],
        env={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": str(checkout.runtime),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_USE_LEGACY_KERAS": "",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "FAILED" not in done.stdout, done.stdout
    assert done.stdout.count("ok ") == CHECKS.read_text().count("@check"), done.stdout + done.stderr
