"""VGPU_CHECK=order on machine code, and on the PTX of which it was made.

Kernels that its rules accept, and kernels just outside (sass_order_kernels.py): each is (body, grid, block, the rule or
the reason). entry() gives a kernel's name in the code; TEXT is the file of the PTX that text() gives.
"""

import json

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image
from sass_order_kernels import ALL_DEPENDENT, ALL_INDEPENDENT, CHECKED, NOT_PROVED_AS_PTX, TEXT, entry, text

WORDS = 256


def observe(image, code, schedule, tmp_path_factory):
    """Return the verdicts on all kernels by name.  code: "sass" or "ptx"."""
    report = tmp_path_factory.mktemp("order") / "report.jsonl"
    launches = [Launch(entry(name), case[1], case[2], [np.zeros(WORDS, np.uint32)]) for name, case in CHECKED.items()]
    variables = {"VGPU_CHECK": "order", "VGPU_REPORT": str(report), "VGPU_MAX_INSTRUCTIONS": "1000000"}
    _, stderr = run_image(image, launches, code, schedule, **variables)
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    verdicts = {line["kernel"]: line["order"] for line in lines if "kernel" in line}
    assert len(verdicts) == len(CHECKED), stderr
    return {name: verdicts[entry(name)] for name in CHECKED}


@pytest.fixture(scope="module", params=["serial", "random:1"])
def verdict_by_kernel(request, tmp_path_factory):
    return observe((KERNELS / "order.fatbin").read_bytes(), "sass", request.param, tmp_path_factory)


@pytest.fixture(scope="module", params=["serial", "random:1"])
def ptx_verdicts(request, tmp_path_factory):
    return observe(TEXT.read_bytes() + b"\0", "ptx", request.param, tmp_path_factory)


@pytest.mark.parametrize("name", ALL_INDEPENDENT)
def test_as_ptx_schedule_independent_kernels_are_proved(ptx_verdicts, name):
    assert ptx_verdicts[name]["proved"] == (name not in NOT_PROVED_AS_PTX), ptx_verdicts[name]


@pytest.mark.parametrize("name", ALL_DEPENDENT)
def test_as_ptx_order_dependent_kernels_are_not_proved(ptx_verdicts, name):
    verdict, reason = ptx_verdicts[name], ALL_DEPENDENT[name][3]
    assert not verdict["proved"]
    if reason in ("inactive_lane", "uninitialized"):
        assert reason in {found["reason"] for found in verdict["reasons"]}


@pytest.mark.parametrize("name", ALL_INDEPENDENT)
def test_schedule_independent_kernels_are_proved(verdict_by_kernel, name):
    verdict, rule = verdict_by_kernel[name], ALL_INDEPENDENT[name][3]
    assert verdict["proved"], verdict
    assert rule is None or rule in verdict["rules"]


@pytest.mark.parametrize("name", ALL_DEPENDENT)
def test_order_dependent_kernels_are_not_proved(verdict_by_kernel, name):
    verdict = verdict_by_kernel[name]
    assert not verdict["proved"]
    assert ALL_DEPENDENT[name][3] in {reason["reason"] for reason in verdict["reasons"]}


def test_a_reason_names_the_instruction(verdict_by_kernel):
    """Both lines, offsets in machine code, are those of the same reduction."""
    ((first, second),) = (reason["lines"] for reason in verdict_by_kernel["a sum that rounds"]["reasons"])
    assert first == second
    assert first % 16 == 0 and first > 0


def test_the_container_was_made_from_these_kernels():
    assert TEXT.read_text("utf-8") == text(), "see sass_order_kernels.py"
