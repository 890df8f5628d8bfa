"""Out-of-bounds accesses that a card may not notice: beyond an allocation, to a freed one, between shared arrays."""

import ctypes

import pytest
from bare_program import run_program  # the code finds cuda, text, load(), allocate(), free(), launch(), words()
from virtual_device import HEAD, kernel

ILLEGAL_ADDRESS = 700
STORE_AT = kernel(
    "ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; add.u64 %l0, %l0, %l1; mov.u16 %h0, 1; st.global.u8 [%l0], %h0;",
    ["p0", "p1"],
)
STORE = """
function = load(text)
def store(at, offset=0):
    return launch(function, at, offset)
"""


def store_results(device, code, **environment):
    """Run code after STORE; return the numbers that it prints."""
    return run_program(device, STORE + code, STORE_AT, **environment)[0]


WHERE = {
    "before it": lambda size: -1,
    "at its end": lambda size: size,
    "near its end": lambda size: size + 7,
    "a page behind": lambda size: size + 4096,
    "as far again": lambda size: 2 * size - 1 if size > 1 else 1,
}


@pytest.mark.parametrize("size", [1, 4096, 1 << 20])
@pytest.mark.parametrize("where", WHERE)
def test_accesses_around_an_allocation_are_illegal(device, size, where):
    code = f"""
all = [allocate({size}) for _ in range(64)]
print(*(store(at, {size} - 1) for at in all), store(all[20], {WHERE[where](size) % 2**64}), store(all[20], 0))
"""
    assert store_results(device, code) == [0] * 64 + [ILLEGAL_ADDRESS] * 2


def test_addresses_are_aligned_and_the_size_is_the_nominal_one(device):
    free_before, free_after, total = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
    device.cuda.cuMemGetInfo_v2(ctypes.byref(free_before), ctypes.byref(total))
    allocations = [device.allocate(1000) for _ in range(20)]
    device.cuda.cuMemGetInfo_v2(ctypes.byref(free_after), ctypes.byref(total))
    assert not any(address.value % 512 for address in allocations)
    assert free_before.value - free_after.value == 20 * 1000
    for address in allocations:
        device.cuda.cuMemFree_v2(address)


def test_all_of_the_memory_may_be_one_allocation(device):
    code = """
held = allocate(64 << 20)
print(store(held, (64 << 20) - 1), cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1)))
for _ in range(2500):  # more than the addresses that lie around it: they are dealt out again at last
    free(held)
    held = allocate(64 << 20)
print(store(held), store(held, 64 << 20))
"""
    assert store_results(device, code, VGPU_MEMORY_MIB="64") == [0, 2, 0, ILLEGAL_ADDRESS]


@pytest.mark.parametrize("size", [8, 5000, 3 << 20])
def test_freed_memory_stays_illegal_after_other_allocations(device, size):
    code = f"""
gone = allocate({size})
free(gone)
for _ in range(200):
    free(allocate({size}))
kept = [allocate({size}) for _ in range(8)]
print(store(kept[0]), store(gone), store(kept[0]))
"""
    assert store_results(device, code) == [0, ILLEGAL_ADDRESS, ILLEGAL_ADDRESS]


DECLARED = """.extern .func (.param .b64 result) malloc(.param .b64 bytes);
.extern .func free(.param .b64 at);"""
MALLOC = """{ .param .b64 a; .param .b64 r; st.param.b64 [a], SIZE; call.uni (r), malloc, (a); ld.param.b64 %l3, [r]; }
st.u8 [%l3], %h0;"""
FREE = "{ .param .b64 a; st.param.b64 [a], %l3; call.uni free, (a); }"
MALLOC_20 = MALLOC.replace("SIZE", "20")
HEAP_FAULTS = {
    "behind its end": "st.u8 [%l3+20], %h0;",
    "before its beginning": "st.u8 [%l3+-1], %h0;",
    "a word that begins in it": "st.u64 [%l3+16], %l3;",
    "as far again": "st.u8 [%l3+39], %h0;",
    "after it was freed": f"{FREE} ld.u8 %h1, [%l3];",
    "freed twice": f"{FREE} {FREE}",
    "freed in its midst": f"add.u64 %l3, %l3, 16; {FREE}",
    "freed, and others taken since": f"mov.u64 %l4, %l3; {FREE} {MALLOC_20} {FREE} {MALLOC_20} st.u8 [%l4], %h0;",
}


@pytest.mark.parametrize("name", [*HEAP_FAULTS, "as it should be"])
def test_accesses_outside_of_heap_allocations_are_illegal(device, name):
    body = f"mov.u16 %h0, 1; {MALLOC_20} mov.u64 %l5, %l3; {MALLOC_20} mov.u64 %l3, %l5; st.u8 [%l3+19], %h0;"
    text = kernel(body + HEAP_FAULTS.get(name, FREE), [], head=DECLARED)  # another piece lies behind it
    assert run_program(device, "print(launch(load(text)))", text)[0] == [ILLEGAL_ADDRESS if name in HEAP_FAULTS else 0]


SHARED = (
    HEAD
    + """
.extern .shared .align 4 .u32 own[];
.visible .entry k(.param .b64 p0) {
.shared .align 4 .u32 first[8]; .shared .align 4 .u32 second[8];
.reg .b64 %l<4>; .reg .b32 %r<4>;
ld.param.u64 %l0, [p0]; ld.global.u32 %r0, [%l0]; mov.u32 %r1, BASE; add.u32 %r1, %r1, %r0;
ACCESS
ld.shared.u32 %r2, [second]; ld.shared.u32 %r2, [own]; st.global.u32 [%l0], %r2;
}"""
)
ACCESSES = {
    "write": "st.shared.u32 [%r1], 7;",
    "read": "ld.shared.u32 %r3, [%r1];",
    "atomic": "red.shared.add.u32 [%r1], 1;",
}


ONE_BLOCK = """
at = allocate(8)
cuda.cuMemsetD32_v2(ctypes.c_uint64(at), {offset}, ctypes.c_size_t(1))
print(launch(load(text), at, shared=32), words(at, 2)[1])
"""


@pytest.fixture
def checked(device):
    """Return a function that runs an access to shared memory with memcheck and returns the report."""

    def report(offset, access="write", base="first"):
        text = SHARED.replace("ACCESS", ACCESSES[access]).replace("BASE", base)
        (code, _), report = run_program(device, ONE_BLOCK.format(offset=offset), text, VGPU_CHECK="memcheck")
        assert code == 0, "a card does not notice"
        return report

    return report


@pytest.mark.parametrize("access", ACCESSES)
def test_an_overrun_into_another_shared_array_is_reported(checked, access):
    report = checked(32, access)
    assert "memcheck" in report and f"the {access} of line" in report and "0 bytes behind the end of first" in report
    assert not checked(28, access)


@pytest.mark.parametrize(
    ("offset", "base", "told"), [(60, "first", True), (0, "second", False), (32, "second", True), (28, "own", False)]
)
def test_accesses_within_a_declared_variable_are_not_reported(checked, offset, base, told):
    assert bool(checked(offset, base=base)) == told


@pytest.mark.parametrize("check", ["", "memcheck"])
def test_checking_does_not_change_the_size_of_shared_memory(device, check):
    access = "mov.u32 %r3, %total_smem_size; st.global.u32 [%l0+4], %r3;"
    text = SHARED.replace("ACCESS", access).replace("BASE", "first")
    assert run_program(device, ONE_BLOCK.format(offset=0), text, VGPU_CHECK=check)[0] == [0, 96]
