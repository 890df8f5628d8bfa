"""Approximate instructions give the bits of an NVIDIA H100: checksums over its recorded results.

benchmarks/approximations.py checks all arguments.
"""

import json
from pathlib import Path

import numpy as np
import pytest

RECORDED = json.loads((Path(__file__).parent / "approximations.json").read_text("utf-8"))
FIRST, STEP = 5, 1021  # the samples are every STEP-th block of 65,536 arguments
SHARE = 5  # a test checks every SHARE-th sample


def murmur_finalizer(x):
    """Return the 64-bit finalizer of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    return x ^ (x >> np.uint64(33))


def checksum(results):
    """Return a checksum of the results and their positions."""
    low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(32)
    return int(np.sum(murmur_finalizer(low | results.astype(np.uint64)))) & 0xFFFFFFFF


def block_results(device, op, block):
    """Return an instruction's results for 65,536 arguments; of doubles, the upper words."""
    high = (np.uint32(block) << np.uint32(16)) + np.arange(1 << 16, dtype=np.uint32)
    if not op.endswith("f64"):
        return device.evaluate(f"{op} %d, %x;", [np.uint32], high)
    results = device.evaluate(f"{op} %d, %x;", [np.uint64], high.astype(np.uint64) << np.uint64(32))
    return (results >> np.uint64(32)).astype(np.uint32)


@pytest.mark.parametrize("op", RECORDED["samples"])
def test_results_have_the_bits_of_an_h100(device, op):
    text = RECORDED["samples"][op]
    recorded = {FIRST + STEP * n: int(text[8 * n : 8 * n + 8], 16) for n in range(len(text) // 8)}
    assert len(recorded) == 65
    chosen = dict(list(recorded.items())[::SHARE])
    results = {block: checksum(block_results(device, op, block)) for block in chosen}
    assert results == chosen


@pytest.mark.parametrize("op", RECORDED["halves"])
def test_results_of_halves_have_the_bits_of_an_h100(device, op):
    results = device.evaluate(f"{op} %d, %x;", [np.uint16], np.arange(1 << 16, dtype=np.uint16))
    assert checksum(results) == RECORDED["halves"][op]
