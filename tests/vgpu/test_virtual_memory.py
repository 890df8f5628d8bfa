"""The driver's virtual memory calls: reservation, creation, mapping and access rights, and their reversal."""

import ctypes

import numpy as np
import pytest
from bare_program import run_program  # the code finds cuda, text, load(), allocate(), free(), launch(), words()
from virtual_device import kernel

INVALID_VALUE, OUT_OF_MEMORY, ILLEGAL_ADDRESS = 1, 2, 700
PAGE, NONE, READ, WRITE = 2 << 20, 0, 1, 3
n = ctypes.c_size_t


class Properties(ctypes.Structure):
    """The structure CUmemAllocationProp, for pinned memory of device 0."""

    _fields_ = (("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int * 2),
                ("metadata", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8))  # fmt: skip


PINNED = Properties(1, 0, (1, 0))


class Space:
    """Calls of virtual memory management, with their fixed arguments."""

    def __init__(self, cuda):
        self.cuda = cuda

    def reserve(self, size):
        """Reserve addresses; return the first."""
        address = ctypes.c_uint64()
        assert (
            self.cuda.cuMemAddressReserve(ctypes.byref(address), n(size), n(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
            == 0
        )
        assert address.value % PAGE == 0
        return address.value

    def make(self, size, status=0):
        """Create physical memory; return its handle."""
        handle = ctypes.c_uint64()
        assert self.cuda.cuMemCreate(ctypes.byref(handle), n(size), ctypes.byref(PINNED), ctypes.c_uint64(0)) == status
        return handle

    def map(self, address, size, handle, offset=0):
        """Map memory at the addresses; return the status."""
        return self.cuda.cuMemMap(ctypes.c_uint64(address), n(size), n(offset), handle, ctypes.c_uint64(0))

    def allow(self, address, size, flags):
        """Set the access rights; return the status."""
        return self.cuda.cuMemSetAccess(ctypes.c_uint64(address), n(size), (ctypes.c_int * 3)(1, 0, flags), n(1))

    def fill(self, address, size, value=1):
        """Fill the addresses; return the status."""
        return self.cuda.cuMemsetD8_v2(ctypes.c_uint64(address), value, n(size))

    def read(self, address):
        """Return the byte at the address."""
        byte = np.zeros(1, np.uint8)
        assert self.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(byte.ctypes.data), ctypes.c_uint64(address), n(1)) == 0
        return int(byte[0])

    def free_bytes(self):
        free, total = n(), n()
        assert self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
        return free.value


@pytest.fixture
def space(device):
    return Space(device.cuda)


def test_memory_is_mapped_piecewise_into_one_range(space):
    """PyTorch's expandable segments grow in this way."""
    address, free_before = space.reserve(4 * PAGE), space.free_bytes()
    for k in range(3):
        handle = space.make(PAGE)
        assert space.map(address + k * PAGE, PAGE, handle) == 0
        assert space.fill(address + k * PAGE, PAGE) == INVALID_VALUE, "nobody may use it yet"
        assert space.allow(address + k * PAGE, PAGE, WRITE) == 0
        assert space.cuda.cuMemRelease(handle) == 0
    assert free_before - space.free_bytes() == 3 * PAGE
    assert space.fill(address, 3 * PAGE, 7) == 0, "across the pieces"
    assert space.fill(address, 3 * PAGE + 1) == INVALID_VALUE
    assert space.read(address + 3 * PAGE - 1) == 7
    assert space.cuda.cuMemAddressFree(ctypes.c_uint64(address), n(4 * PAGE)) == INVALID_VALUE, "it is mapped"
    assert space.cuda.cuMemUnmap(ctypes.c_uint64(address), n(PAGE // 2)) == INVALID_VALUE, "pieces go as a whole"
    assert space.cuda.cuMemUnmap(ctypes.c_uint64(address), n(3 * PAGE)) == 0
    assert space.fill(address, 1) == INVALID_VALUE and space.free_bytes() == free_before
    assert space.cuda.cuMemAddressFree(ctypes.c_uint64(address), n(4 * PAGE)) == 0
    assert space.cuda.cuMemAddressFree(ctypes.c_uint64(address), n(4 * PAGE)) == INVALID_VALUE


def test_one_memory_has_two_addresses(space):
    address, handle, retained = space.reserve(4 * PAGE), space.make(2 * PAGE), ctypes.c_uint64()
    assert space.map(address, 2 * PAGE, handle) == space.map(address + 2 * PAGE, PAGE, handle, PAGE) == 0
    assert space.allow(address, 3 * PAGE, WRITE) == 0
    assert space.fill(address + PAGE + 5, 1, 99) == 0 and space.read(address + 2 * PAGE + 5) == 99
    assert space.cuda.cuMemRetainAllocationHandle(ctypes.byref(retained), ctypes.c_void_p(address + 5)) == 0
    properties = Properties()
    assert (
        space.cuda.cuMemGetAllocationPropertiesFromHandle(ctypes.byref(properties), retained) == 0
        and properties.type == 1
    )
    assert [space.cuda.cuMemRelease(item) for item in (retained, handle, handle)] == [0, 0, INVALID_VALUE]
    assert space.cuda.cuMemUnmap(ctypes.c_uint64(address), n(3 * PAGE)) == 0
    assert space.cuda.cuMemAddressFree(ctypes.c_uint64(address), n(4 * PAGE)) == 0


def test_invalid_calls_are_refused(space):
    address, handle, wrong_device, out = (
        space.reserve(2 * PAGE),
        space.make(PAGE),
        Properties(1, 0, (1, 3)),
        ctypes.c_uint64(),
    )
    zero = ctypes.c_uint64(0)
    assert space.map(address + PAGE // 2, PAGE, handle) == space.map(address + 2 * PAGE, PAGE, handle) == INVALID_VALUE
    assert space.map(address, 2 * PAGE, handle) == space.map(address, PAGE, ctypes.c_uint64(77)) == INVALID_VALUE
    assert space.map(address, PAGE, handle) == 0 and space.map(address, PAGE, handle) == INVALID_VALUE
    assert space.allow(address, 2 * PAGE, WRITE) == space.allow(address, PAGE, 2) == INVALID_VALUE
    assert space.cuda.cuMemCreate(ctypes.byref(out), n(100), ctypes.byref(PINNED), zero) == INVALID_VALUE
    assert space.cuda.cuMemCreate(ctypes.byref(out), n(PAGE), ctypes.byref(wrong_device), zero) == INVALID_VALUE
    assert space.cuda.cuMemAddressReserve(ctypes.byref(out), n(100), n(0), zero, zero) == INVALID_VALUE
    assert space.cuda.cuMemFree_v2(ctypes.c_uint64(address)) == INVALID_VALUE
    space.make(1 << 50, OUT_OF_MEMORY)
    size, value = n(), ctypes.c_int()
    assert (
        space.cuda.cuMemGetAllocationGranularity(ctypes.byref(size), ctypes.byref(PINNED), 0) == 0
        and size.value == PAGE
    )
    assert space.cuda.cuDeviceGetAttribute(ctypes.byref(value), 102, 0) == 0 and value.value == 1
    assert space.cuda.cuMemUnmap(ctypes.c_uint64(address), n(PAGE)) == space.cuda.cuMemRelease(handle) == 0
    assert space.cuda.cuMemAddressFree(ctypes.c_uint64(address), n(2 * PAGE)) == 0


TOUCH = {"read": "ld.global.u32 %r1, [%l0];", "write": "st.global.u32 [%l0], 1;"}
MAPPED = """
at, handle, zero, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(0), ctypes.c_size_t(2 << 20)
properties = (ctypes.c_int * 8)(1, 0, 1, 0)
assert cuda.cuMemAddressReserve(ctypes.byref(at), size, zero, zero, zero) == 0
assert cuda.cuMemCreate(ctypes.byref(handle), size, properties, zero) == 0
assert cuda.cuMemMap(at, size, zero, handle, zero) == 0
assert cuda.cuMemSetAccess(at, size, (ctypes.c_int * 3)(1, 0, {flags}), ctypes.c_size_t(1)) == 0
print(launch(load(text), at.value))
"""


@pytest.mark.parametrize(
    ("flags", "touch", "wanted"),
    [(WRITE, "write", 0), (READ, "read", 0), (READ, "write", ILLEGAL_ADDRESS), (NONE, "read", ILLEGAL_ADDRESS)],
)
def test_kernels_obey_the_access_rights(device, flags, touch, wanted):
    text = kernel("ld.param.u64 %l0, [p0];" + TOUCH[touch], ["p0"])
    assert run_program(device, MAPPED.format(flags=flags), text)[0] == [wanted]
