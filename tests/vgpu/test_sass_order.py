"""VGPU_CHECK=order on machine code: what its rules accept, and what lies just outside (sass_order_kernels.py)."""

import json

import numpy as np
import pytest
from containers import KERNELS, Launch, run
from sass_order_kernels import ALL_DEPENDENT, ALL_INDEPENDENT, CHECKED, TEXT, entry, text

WORDS = 256


@pytest.fixture(scope="module", params=["serial", "random:1"])
def judged(request, tmp_path_factory):
    report = tmp_path_factory.mktemp("order") / "report.jsonl"
    launches = [Launch(entry(name), one[1], one[2], [np.zeros(WORDS, np.uint32)]) for name, one in CHECKED.items()]
    how = {"VGPU_CHECK": "order", "VGPU_REPORT": str(report), "VGPU_MAX_INSTRUCTIONS": "1000000"}
    _, said = run((KERNELS / "order.fatbin").read_bytes(), launches, "sass", request.param, **how)
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    found = {line["kernel"]: line["order"] for line in lines if "kernel" in line}
    assert len(found) == len(CHECKED), said
    return {name: found[entry(name)] for name in CHECKED}


@pytest.mark.parametrize("name", ALL_INDEPENDENT)
def test_the_same_in_every_order(judged, name):
    verdict, rule = judged[name], ALL_INDEPENDENT[name][3]
    assert verdict["proved"], verdict
    assert rule is None or rule in verdict["rules"]


@pytest.mark.parametrize("name", ALL_DEPENDENT)
def test_what_an_order_decides_is_not_proved(judged, name):
    verdict = judged[name]
    assert not verdict["proved"]
    assert ALL_DEPENDENT[name][3] in {one["reason"] for one in verdict["reasons"]}


def test_a_reason_names_the_instruction(judged):
    """Both are the one reduction."""
    ((first, second),) = (one["lines"] for one in judged["a sum that rounds"]["reasons"])
    assert first == second
    assert first % 16 == 0 and first > 0


def test_the_container_is_of_these_kernels():
    assert TEXT.read_text("utf-8") == text(), "see sass_order_kernels.py"
