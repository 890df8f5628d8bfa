"""VGPU_PLACEMENT chooses addresses, and VGPU_MULTIPROCESSORS the size of the device."""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from virtual_device import Device, build, kernel

PAGE, GUARANTEED = 4096, 256  # bytes; CUDA guarantees the second
SIZES = [1, 100, 4096, 1 << 20, 256, 70000, 5 << 20, 12]
WORD = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l1, %l0, %l1;"
PLACE = kernel(WORD + "cvt.u32.u64 %r1, %l0; and.b32 %r1, %r1, 4095; st.global.u32 [%l1], %r1;", ["p0"])
PROCESSOR = kernel(
    "ld.param.u64 %l0, [p0]; mov.u32 %r3, %ctaid.x; mul.wide.u32 %l1, %r3, 8; add.u64 %l1, %l0, %l1;"
    "mov.u32 %r1, %smid; mov.u32 %r2, %nsmid; st.global.v2.u32 [%l1], {%r1, %r2};",
    ["p0"],
)


def told(task, **environment):
    command = [sys.executable, __file__, task]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def addresses(device):
    """Of allocations of SIZES, some of them after others were freed."""
    first = [device.allocate(size) for size in SIZES]
    for at in first[::2]:
        assert device.cuda.cuMemFree_v2(at) == 0
    return [at.value for at in [*first, *(device.allocate(size) for size in SIZES)]]


def remains(device):
    """Whether memory that lies beside memory that is freed keeps its bytes, and new memory is zero."""
    held = [(device.copy_in(np.full(3000, k, np.uint8)), k) for k in range(64)]
    for at, _ in held[::2]:
        device.cuda.cuMemFree_v2(at)
    left, fresh = np.zeros(3000, np.uint8), np.ones(3000, np.uint8)
    for at, k in held[1::2]:
        device.copy_out(at, left)
        if (left != k).any():
            return False
    device.copy_out(device.allocate(3000), fresh)
    return not fresh.any()


def place(device):
    result, (out,) = device.run(PLACE, [np.zeros(32, np.uint32)], block=1)
    assert result == 0
    return int(out[0])


def processors(device):
    """[multiprocessor, how many there are] of each of 32 blocks."""
    result, (out,) = device.run(PROCESSOR, [np.zeros(64, np.uint32)], grid=32, block=1)
    assert result == 0
    return out.reshape(32, 2).tolist()


def attribute(device):
    value = ctypes.c_int()
    assert device.cuda.cuDeviceGetAttribute(ctypes.byref(value), 16, 0) == 0
    return value.value


def beyond(device):
    """CUDA's result of a kernel that writes far behind its array."""
    text = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0+131072], 1;", ["p0"])
    return device.run(text, [np.zeros(1, np.uint32)], block=1)[0]


def test_allocations_lie_elsewhere_within_the_guarantee():
    of = {seed: told("addresses", VGPU_PLACEMENT=seed) for seed in ("1", "2", "3")}
    for found in of.values():
        live = sorted(set(found[1 : len(SIZES) : 2]) | set(found[len(SIZES) :]))
        assert len(live) == len(SIZES) + len(SIZES) // 2
        assert all(at % GUARANTEED == 0 for at in found)
        assert any(at % PAGE for at in found)
        assert found[: len(SIZES)] != sorted(found[: len(SIZES)])
    assert len({tuple(at % PAGE for at in found) for found in of.values()}) == 3


def test_a_seed_repeats_its_places():
    ones = [[at % PAGE for at in told("addresses", VGPU_PLACEMENT="5")] for _ in range(2)]
    assert ones[0] == ones[1]


def test_without_a_seed_allocations_begin_pages_one_after_the_other():
    found = told("addresses")
    assert all(at % PAGE == 0 for at in found)
    assert found[: len(SIZES)] == sorted(found[: len(SIZES)])


@pytest.mark.parametrize("seed", ["1", "2", "3", "4"])
def test_freed_memory_takes_nothing_with_it(seed):
    assert told("remains", VGPU_PLACEMENT=seed)


def test_a_kernel_that_looks_at_its_address_gives_other_bytes():
    assert len({told("place", VGPU_PLACEMENT=str(seed)) for seed in range(8)}) > 1
    assert {told("place") for _ in range(2)} == {0}


def test_an_access_beyond_is_a_fault_wherever_it_lies():
    assert {told("beyond", VGPU_PLACEMENT=str(seed)) for seed in range(4)} == {700}


@pytest.mark.parametrize(
    ("count", "schedule"), [("1", "random:1"), ("2", "serial"), ("7", "reverse"), ("108", "random:3")]
)
def test_blocks_run_on_as_many_multiprocessors_as_there_are(count, schedule):
    assert told("attribute", VGPU_MULTIPROCESSORS=count) == int(count)
    found = told("processors", VGPU_MULTIPROCESSORS=count, VGPU_SCHEDULE=schedule)
    assert {among for _, among in found} == {int(count)}
    assert all(0 <= at < int(count) for at, _ in found)
    assert len({at for at, _ in found}) > 1 or count == "1"


def test_a_schedule_chooses_the_multiprocessor():
    of = [told("processors", VGPU_MULTIPROCESSORS="8", VGPU_SCHEDULE=one) for one in ("serial", "random:1", "random:2")]
    assert len({json.dumps(one) for one in of}) == 3
    assert of[1] == told("processors", VGPU_MULTIPROCESSORS="8", VGPU_SCHEDULE="random:1")


def test_without_a_number_there_are_two():
    assert told("attribute") == 2


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Device(build()))))
