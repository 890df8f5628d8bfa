"""Random kernels that shuffle in incomplete warps: VGPU_CHECK=order proves only those that no schedule changes.

A schedule chooses what a lane gets from one that takes no part, so that a result which depends on it differs.
"""

import json

import numpy as np
import pytest
import shuffle_kernels
from containers import KERNELS, Launch, run_image

COUNT = 200
SCHEDULES = ("serial", "reverse", "random:1", "random:2", "random:3")


def observe(image, seeds, folder):
    """Run the kernels of these seeds in each schedule; return the seeds of those that differ, and of the proved."""
    launches = [
        Launch(f"k{seed}", 2, shuffle_kernels.kernel(seed)[1], [np.zeros(shuffle_kernels.WORDS, np.uint32)])
        for seed in seeds
    ]
    outputs = {seed: set() for seed in seeds}
    proved = set(seeds)
    for schedule in SCHEDULES:
        report = folder / f"{schedule}.jsonl"
        results, stderr = run_image(image, launches, "sass", schedule, VGPU_CHECK="order", VGPU_REPORT=str(report))
        verdicts = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        verdicts = {line["kernel"]: line["order"]["proved"] for line in verdicts if "kernel" in line}
        assert len(verdicts) == len(launches), stderr
        for seed, (_, (array,)) in zip(seeds, results, strict=True):
            outputs[seed].add(array.tobytes())
        proved &= {seed for seed in seeds if verdicts[f"k{seed}"]}
    return {seed for seed, arrays in outputs.items() if len(arrays) > 1}, proved


@pytest.fixture(scope="module")
def differing_and_proved(tmp_path_factory):
    image = (KERNELS / "shuffles.fatbin").read_bytes()
    return observe(image, range(COUNT), tmp_path_factory.mktemp("reports"))


def test_no_kernel_that_differs_is_proved(differing_and_proved):
    differing, proved = differing_and_proved
    assert len(differing) >= COUNT / 20
    assert differing & proved == set()


def test_most_kernels_that_do_not_differ_are_proved(differing_and_proved):
    differing, proved = differing_and_proved
    assert len(proved) >= 0.75 * (COUNT - len(differing))
