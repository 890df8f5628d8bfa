"""The functions of tfdeterminism.pytorch in a real PyTorch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdeterminism.pytorch import enable_determinism
from tfdeterminism.pytorch.report import Report

PROGRAM = """
import json, os, random
import numpy, torch
import tfdeterminism.pytorch as pytorch

def state():
    return [os.environ.get("CUBLAS_WORKSPACE_CONFIG"), torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark,
            torch.utils.deterministic.fill_uninitialized_memory]

def drawn():
    return [random.random(), numpy.random.rand(), torch.rand(1).item()]

def refuses():
    try:
        torch.zeros(2).put_(torch.tensor([0]), torch.tensor([1.0]))
        return ""
    except RuntimeError as error:
        return str(error)[:40]

torch.backends.cudnn.benchmark, torch.utils.deterministic.fill_uninitialized_memory = True, False
found = {"before": state(), "refused_before": refuses()}
report = pytorch.enable_determinism(seed=3)
found.update(first=drawn(), on=state(), refused=refuses(), empty=bool(torch.empty(64).isnan().all()), done=report.done)
again = pytorch.enable_determinism(seed=3)
found.update(second=drawn(), text=str(again), remaining=again.remaining)
loader = torch.utils.data.DataLoader(range(8), shuffle=True, generator=pytorch.generator(1))
found["order"] = [int(batch) for batch in loader]
pytorch.disable()
found.update(after=state(), refused_after=refuses())
print(json.dumps(found))
"""


@pytest.mark.tensorflow
def test_enable_determinism_sets_and_restores_pytorchs_state(torch_python: Path, checkout: Project) -> None:
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout.runtime), "OMP_NUM_THREADS": "1"}
    command = [torch_python, "-c", PROGRAM]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    assert output["before"] == output["after"] == [None, False, False, True, False]
    assert output["on"] == [":4096:8", True, True, False, True]
    assert output["first"] == output["second"]
    assert (output["refused_before"], output["refused_after"]) == ("", "")
    assert output["refused"] == "put_ does not have a deterministic imple"
    assert output["empty"], "uninitialized memory is filled"
    assert output["done"][0] == "set environment variable CUBLAS_WORKSPACE_CONFIG=:4096:8"
    assert sorted(output["order"]) == list(range(8))
    assert any(line.startswith("put: raises an error") for line in output["remaining"])
    assert "PyTorch 2.13.0\n" in output["text"]
    assert "  - Start Python with PYTHONHASHSEED=0" in output["text"]


def test_without_a_seed_generators_stay_unchanged() -> None:
    with pytest.raises(TypeError, match="a seed is an int"):
        enable_determinism(seed="1")


def test_an_unknown_version_gets_the_list_of_the_nearest_one() -> None:
    assert Report("2.13.1+cpu", 1).remaining == Report("2.13.0", 1).remaining
    assert Report("9.0.0", 1).remaining
    assert Report("1.4.0", 1).remaining == Report("2.0.0", 1).remaining
