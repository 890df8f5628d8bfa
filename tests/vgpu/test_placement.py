"""VGPU_PLACEMENT selects addresses, and VGPU_MULTIPROCESSORS the size of the device."""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from virtual_device import Device, build, kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

PAGE, GUARANTEED = 4096, 256  # bytes; CUDA guarantees the second
SIZES = [1, 100, 4096, 1 << 20, 256, 70000, 5 << 20, 12]
WORD = "ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %i, 4; add.u64 %l1, %l0, %l1;"
PLACE = kernel(WORD + "cvt.u32.u64 %r1, %l0; and.b32 %r1, %r1, 4095; st.global.u32 [%l1], %r1;", ["p0"])
PROCESSOR = kernel(
    "ld.param.u64 %l0, [p0]; mov.u32 %r3, %ctaid.x; mul.wide.u32 %l1, %r3, 8; add.u64 %l1, %l0, %l1;"
    "mov.u32 %r1, %smid; mov.u32 %r2, %nsmid; st.global.v2.u32 [%l1], {%r1, %r2};",
    ["p0"],
)


def run_function(task, **environment):
    """Run a function of this file in a process with the environment, and return its result."""
    command = [sys.executable, __file__, task]
    process = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def addresses(device):
    """Return the addresses of allocations of SIZES, some of them after others were freed."""
    allocations = [device.allocate(size) for size in SIZES]
    for address in allocations[::2]:
        assert device.cuda.cuMemFree_v2(address) == 0
    return [address.value for address in [*allocations, *(device.allocate(size) for size in SIZES)]]


def remains(device):
    """Return whether memory beside freed memory keeps its bytes, and new memory is zero."""
    allocations = [(device.copy_in(np.full(3000, k, np.uint8)), k) for k in range(64)]
    for address, _ in allocations[::2]:
        device.cuda.cuMemFree_v2(address)
    values, fresh = np.zeros(3000, np.uint8), np.ones(3000, np.uint8)
    for address, k in allocations[1::2]:
        device.copy_out(address, values)
        if (values != k).any():
            return False
    device.copy_out(device.allocate(3000), fresh)
    return not fresh.any()


def place(device):
    """Return the array's offset in its page, as the kernel sees it."""
    result, (out,) = device.run(PLACE, [np.zeros(32, np.uint32)], block=1)
    assert result == 0
    return int(out[0])


def processors(device):
    """Return [multiprocessor, number of multiprocessors] for each of 32 blocks."""
    result, (out,) = device.run(PROCESSOR, [np.zeros(64, np.uint32)], grid=32, block=1)
    assert result == 0
    return out.reshape(32, 2).tolist()


def attribute(device):
    """Return the number of multiprocessors that the driver reports."""
    value = ctypes.c_int()
    assert device.cuda.cuDeviceGetAttribute(ctypes.byref(value), 16, 0) == 0
    return value.value


def beyond(device):
    """Return CUDA's result of a kernel that writes far beyond its array."""
    text = kernel("ld.param.u64 %l0, [p0]; st.global.u32 [%l0+131072], 1;", ["p0"])
    return device.run(text, [np.zeros(1, np.uint32)], block=1)[0]


def test_placement_moves_allocations_within_the_guaranteed_alignment():
    addresses_by_seed = {seed: run_function("addresses", VGPU_PLACEMENT=seed) for seed in ("1", "2", "3")}
    for values in addresses_by_seed.values():
        live = sorted(set(values[1 : len(SIZES) : 2]) | set(values[len(SIZES) :]))
        assert len(live) == len(SIZES) + len(SIZES) // 2
        assert all(address % GUARANTEED == 0 for address in values)
        assert any(address % PAGE for address in values)
        assert values[: len(SIZES)] != sorted(values[: len(SIZES)])
    assert len({tuple(address % PAGE for address in values) for values in addresses_by_seed.values()}) == 3


def test_a_seed_repeats_its_places():
    runs = [[address % PAGE for address in run_function("addresses", VGPU_PLACEMENT="5")] for _ in range(2)]
    assert runs[0] == runs[1]


def test_without_a_seed_allocations_begin_pages_one_after_the_other():
    values = run_function("addresses")
    assert all(address % PAGE == 0 for address in values)
    assert values[: len(SIZES)] == sorted(values[: len(SIZES)])


@pytest.mark.parametrize("seed", ["1", "2", "3", "4"])
def test_freeing_memory_changes_no_neighbor(seed):
    assert run_function("remains", VGPU_PLACEMENT=seed)


def test_a_kernel_that_depends_on_its_address_gives_other_bytes():
    assert len({run_function("place", VGPU_PLACEMENT=str(seed)) for seed in range(8)}) > 1
    assert {run_function("place") for _ in range(2)} == {0}


def test_an_out_of_bounds_access_is_a_fault_in_every_placement():
    assert {run_function("beyond", VGPU_PLACEMENT=str(seed)) for seed in range(4)} == {700}


@pytest.mark.parametrize(
    ("count", "schedule"), [("1", "random:1"), ("2", "serial"), ("7", "reverse"), ("108", "random:3")]
)
def test_blocks_run_on_the_given_number_of_multiprocessors(count, schedule):
    assert run_function("attribute", VGPU_MULTIPROCESSORS=count) == int(count)
    blocks = run_function("processors", VGPU_MULTIPROCESSORS=count, VGPU_SCHEDULE=schedule)
    assert {total for _, total in blocks} == {int(count)}
    assert all(0 <= multiprocessor < int(count) for multiprocessor, _ in blocks)
    assert len({multiprocessor for multiprocessor, _ in blocks}) > 1 or count == "1"


def test_a_schedule_chooses_the_multiprocessor():
    runs = [
        run_function("processors", VGPU_MULTIPROCESSORS="8", VGPU_SCHEDULE=schedule)
        for schedule in ("serial", "random:1", "random:2")
    ]
    assert len({json.dumps(blocks) for blocks in runs}) == 3
    assert runs[1] == run_function("processors", VGPU_MULTIPROCESSORS="8", VGPU_SCHEDULE="random:1")


def test_the_default_is_two_multiprocessors():
    assert run_function("attribute") == 2


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Device(build()))))
