"""Random kernels that shuffle in incomplete warps: VGPU_CHECK=order proves only those that no schedule changes.

A schedule chooses what a lane gets from one that takes no part, so that a result which depends on it differs.
"""

import json

import numpy as np
import pytest
import shuffle_kernels
from containers import KERNELS, Launch, run_image

COUNT = 200
# Of kernels that no schedule changes.  PTX does not say where lanes reconverge: an unspecified branch ends the proof.
SHARE_PROVED = {"machine code": 0.75, "PTX": 0.6, "PTX of all widths": 0.6}
SCHEDULES = ("serial", "reverse", "random:1", "random:2", "random:3")


def observe(image, threads, folder, code):
    """Run kernels in each schedule; return the seeds of those that differ, and of the proved.

    threads: {seed: number of threads of a block}; code: "sass" or "ptx".
    """
    seeds = list(threads)
    launches = [Launch(f"k{seed}", 2, threads[seed], [np.zeros(shuffle_kernels.WORDS, np.uint32)]) for seed in seeds]
    outputs = {seed: set() for seed in seeds}
    proved = set(seeds)
    for schedule in SCHEDULES:
        report = folder / f"{schedule}.jsonl"
        results, stderr = run_image(image, launches, code, schedule, VGPU_CHECK="order", VGPU_REPORT=str(report))
        verdicts = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
        verdicts = {line["kernel"]: line["order"]["proved"] for line in verdicts if "kernel" in line}
        assert len(verdicts) == len(launches), stderr
        for seed, (_, (array,)) in zip(seeds, results, strict=True):
            outputs[seed].add(array.tobytes())
        proved &= {seed for seed in seeds if verdicts[f"k{seed}"]}
    return {seed for seed, arrays in outputs.items() if len(arrays) > 1}, proved


def text_of(kernels):
    """Return the PTX of kernels as an image.  kernels: {seed: (its PTX, threads)}."""
    return (shuffle_kernels.HEAD + "".join(text for text, _ in kernels.values())).encode() + b"\0"


@pytest.fixture(scope="module", params=["machine code", "PTX", "PTX of all widths"])
def differing_and_proved(request, tmp_path_factory):
    kernels = {seed: shuffle_kernels.kernel(seed, request.param == "PTX of all widths") for seed in range(COUNT)}
    is_text = request.param != "machine code"
    image = text_of(kernels) if is_text else (KERNELS / "shuffles.fatbin").read_bytes()
    threads = {seed: threads for seed, (_, threads) in kernels.items()}
    differing, proved = observe(image, threads, tmp_path_factory.mktemp("reports"), "ptx" if is_text else "sass")
    return differing, proved, SHARE_PROVED[request.param]


def test_no_kernel_that_differs_is_proved(differing_and_proved):
    differing, proved, _ = differing_and_proved
    assert len(differing) >= COUNT / 20
    assert differing & proved == set()


def test_most_kernels_that_do_not_differ_are_proved(differing_and_proved):
    differing, proved, share = differing_and_proved
    assert len(proved) >= share * (COUNT - len(differing))
