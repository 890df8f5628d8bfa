"""patch(), enable_determinism() and disable() in real TensorFlows, old and new."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import weekly
from inside import HERE, run_check

from tfdet.base.paths import Project

CHECKS = "switch_checks.py"
CUDNN, OPS, FRONTEND = "TF_CUDNN_DETERMINISTIC", "TF_DETERMINISTIC_OPS", "TF_CUDNN_USE_FRONTEND"


def expect(*variables: str, teod: bool = False, patch: bool = False) -> dict[str, Any]:
    """Return EXPECTED of switch_checks.py: variables that are set to 1, and whether TEOD and patch() are available.

    TEOD: TensorFlow's own switch, enable_op_determinism().
    """
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
@pytest.mark.parametrize("key", weekly.select_for_today([*VERSIONS], days=weekly.DAYS))
def test_the_switch_passes_every_check(checkout: Project, tf_python: Callable[[str], Path], key: str) -> None:
    printed = run_check(checkout, tf_python(key), CHECKS, json.dumps(VERSIONS[key]), TF_USE_LEGACY_KERAS="")
    assert "FAILED" not in printed, printed
    assert printed.count("ok ") == sum(path.read_text().count("@check") for path in HERE.glob("switch_*checks.py")), (
        printed
    )
