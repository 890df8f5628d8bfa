"""`tfdet check`: which solutions a program's own lines enable and disable."""

from __future__ import annotations

from pathlib import Path

import pytest
from program_checks import enabled_solutions

from tfdet.verdicts.status import Status

TORCH = ("import os, torch", "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'")
SEEDED = "import random, numpy as np, tensorflow as tf"
VARIABLE = "os.environ['TF_DETERMINISTIC_OPS']"
CUDNN = "torch.backends.cudnn"
ON = "torch.use_deterministic_algorithms(True)"
OFF = "torch.use_deterministic_algorithms(False)"


@pytest.mark.parametrize(
    ("lines", "solution"),
    [
        (["import tensorflow as tf", "tf.config.experimental.enable_op_determinism()"], "TEOD"),
        (["import tensorflow.compat.v2 as tf", "tf.config.experimental.enable_op_determinism()"], "TEOD"),
        (["from tfdeterminism import patch", "patch()"], "TDP"),
        (["import tfdeterminism as d", "d.enable_determinism(seed=1)"], "ED"),
        (["import keras", "keras.utils.set_random_seed(1)"], "KSEED"),
        ([SEEDED, "random.seed(1)", "np.random.seed(1)", "tf.random.set_seed(1)"], "SEED"),
        (["import os", "os.environ.setdefault('TF_DETERMINISTIC_OPS', '1')"], "TDO"),
        ([*TORCH, ON], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(mode=True, warn_only=False)"], "UDA"),
        ([*TORCH, "torch.set_deterministic_debug_mode('error')"], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(True, warn_only=True)"], "UDAWARN"),
        ([*TORCH, OFF, ON], "UDA"),
        ([*TORCH, f"{CUDNN}.deterministic = True", f"{CUDNN}.benchmark = False"], "CUDNNDET"),
    ],
)
def test_a_solution_enabled_by_its_documented_call_is_found(
    status: Status, tmp_path: Path, lines: list[str], solution: str
) -> None:
    assert solution in enabled_solutions(status.matrix, tmp_path, *lines)


@pytest.mark.parametrize(
    ("lines", "solution"),
    [
        (["import requests", "requests.patch('http://x')"], "TDP"),
        (["from unittest import mock", "mock.patch('x')"], "TDP"),
        (["import os", "os.enable_op_determinism()"], "TEOD"),
        (["import tensorflow as tf", "tf.random.set_seed(1)"], "SEED"),
        (["import os", "if True:", f"    {VARIABLE} = '1'", f"{VARIABLE} = '0'"], "TDO"),
        ([*TORCH, OFF], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(0)"], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(None)"], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(mode=flag)"], "UDA"),
        ([*TORCH, ON, OFF], "UDA"),
        ([*TORCH, "def f():", f"    {ON}", OFF], "UDA"),
        ([*TORCH, "torch.use_deterministic_algorithms(True, warn_only=True)"], "UDA"),
        ([*TORCH, ON, "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ''"], "UDA"),
        ([*TORCH, f"{CUDNN}.deterministic = True", f"{CUDNN}.benchmark = True"], "CUDNNDET"),
    ],
)
def test_other_calls_and_disabled_solutions_are_not_found(
    status: Status, tmp_path: Path, lines: list[str], solution: str
) -> None:
    assert solution not in enabled_solutions(status.matrix, tmp_path, *lines)
