"""Approximate instructions give the bits of a card: sums over arguments that an NVIDIA H100 gave, recomputed here.

All arguments: python benchmarks/approximations.py.
"""

import json
from pathlib import Path

import numpy as np
import pytest

RECORDED = json.loads((Path(__file__).parent / "approximations.json").read_text("utf-8"))
FIRST, STEP = 5, 1021  # which blocks of 65,536 arguments are in the samples
SHARE = 5  # of the samples, each time


def mixed(x):
    """The finalizer of MurmurHash3, of 64 bits."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ (x >> np.uint64(33))) * np.uint64(factor)
    return x ^ (x >> np.uint64(33))


def summed(results):
    low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(32)
    return int(np.sum(mixed(low | results.astype(np.uint64)))) & 0xFFFFFFFF


def of_block(device, op, block):
    """What an instruction gives for 65,536 arguments; of doubles the upper words."""
    high = (np.uint32(block) << np.uint32(16)) + np.arange(1 << 16, dtype=np.uint32)
    if not op.endswith("f64"):
        return device.evaluate(f"{op} %d, %x;", [np.uint32], high)
    made = device.evaluate(f"{op} %d, %x;", [np.uint64], high.astype(np.uint64) << np.uint64(32))
    return (made >> np.uint64(32)).astype(np.uint32)


@pytest.mark.parametrize("op", RECORDED["samples"])
def test_the_bits_are_the_cards(device, op):
    text = RECORDED["samples"][op]
    recorded = {FIRST + STEP * n: int(text[8 * n : 8 * n + 8], 16) for n in range(len(text) // 8)}
    assert len(recorded) == 65
    chosen = dict(list(recorded.items())[::SHARE])
    made = {block: summed(of_block(device, op, block)) for block in chosen}
    assert made == chosen


@pytest.mark.parametrize("op", RECORDED["halves"])
def test_the_bits_of_halves_are_the_cards(device, op):
    made = device.evaluate(f"{op} %d, %x;", [np.uint16], np.arange(1 << 16, dtype=np.uint16))
    assert summed(made) == RECORDED["halves"][op]
