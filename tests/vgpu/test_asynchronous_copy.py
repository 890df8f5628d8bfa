"""cp.async, in PTX and in machine code: which bytes are copied, what is zero, and which sources are refused."""

import numpy as np
import pytest
from containers import Launch, run_image
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

# Each lane copies to its own 16 bytes of shared memory, which first hold ones: {} is the size, and what follows it.
BODY = """.shared .align 16 .b8 held[512];
ld.param.u64 %l0, [p0]; ld.param.u64 %l1, [p1]; ld.param.u64 %l2, [p2];
mul.wide.u32 %l3, %t, 4; add.u64 %l2, %l2, %l3; ld.global.u32 %r1, [%l2]; setp.ne.u32 %p1, %r1, 0;
mov.u32 %r2, held; mul.lo.u32 %r3, %t, 16; add.u32 %r2, %r2, %r3;
st.shared.v4.u32 [%r2], {{-1, -1, -1, -1}};
mul.wide.u32 %l3, %t, 16; add.u64 %l1, %l1, %l3; add.u64 %l0, %l0, %l3;
cp.async.ca.shared.global [%r2], [%l1], {};
cp.async.commit_group; cp.async.wait_group 0;
ld.shared.v4.u32 {{%r4, %r5, %r6, %r7}}, [%r2]; st.global.v4.u32 [%l0], {{%r4, %r5, %r6, %r7}};"""
SOURCE = np.random.default_rng(3).integers(1, 255, 512, np.uint8)
MISALIGNED, ILLEGAL = 716, 700


@pytest.fixture(params=["ptx", "sass"])
def copy_lanes(request):
    """Return a function that runs BODY: the result of the launch, and the 16 bytes that each lane copied."""
    to_image = str.encode if request.param == "ptx" else request.getfixturevalue("compiled")

    def run(arguments, counts, source=SOURCE, schedule="serial"):
        text = kernel(BODY.format(arguments), ["p0", "p1", "p2"]).replace("sm_90", "sm_80")
        image = to_image(text) + b"\0"
        launch = Launch("k", 1, 32, [np.zeros(512, np.uint8), source, np.asarray(counts, np.uint32)])
        ((result, arrays),), _ = run_image(image, [launch], request.param, schedule)
        return result, arrays[0].reshape(32, 16)

    return run


def expected_bytes(size, counts):
    """Return the bytes of each lane: `counts` of the source, zeros up to the size, then what was there."""
    result = np.full((32, 16), 255, np.uint8)
    for lane, count in enumerate(counts):
        result[lane, :size] = 0
        result[lane, :count] = SOURCE.reshape(32, 16)[lane, :count]
    return result


@pytest.mark.parametrize("schedule", ["serial", "reverse", "random:1", "adversary:2"])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_all_bytes_are_copied(copy_lanes, size, schedule):
    result, bytes_ = copy_lanes(size, np.zeros(32), schedule=schedule)
    assert result == 0
    assert np.array_equal(bytes_, expected_bytes(size, [size] * 32))


@pytest.mark.parametrize("size", [4, 8, 16])
def test_bytes_beyond_the_source_size_are_zero(copy_lanes, size):
    counts = np.arange(32) % (size + 1)
    result, bytes_ = copy_lanes(f"{size}, %r1", counts)
    assert result == 0
    assert np.array_equal(bytes_, expected_bytes(size, counts))


@pytest.mark.parametrize("count", [0, 3, 16])
def test_the_source_size_may_be_a_literal(copy_lanes, count):
    result, bytes_ = copy_lanes(f"16, {count}", np.zeros(32))
    assert result == 0
    assert np.array_equal(bytes_, expected_bytes(16, [count] * 32))


def test_an_ignored_source_gives_zeros(copy_lanes):
    ignored = np.arange(32) % 3 == 0
    result, bytes_ = copy_lanes("8, %p1", ignored)
    assert result == 0
    assert np.array_equal(bytes_, expected_bytes(8, np.where(ignored, 0, 8)))


def test_only_the_counted_bytes_of_a_source_are_read(copy_lanes):
    """The last lane's source has 3 bytes; it may not be read whole."""
    counts = np.full(32, 3)
    result, bytes_ = copy_lanes("16, %r1", counts, SOURCE[:499])
    assert result == 0
    assert np.array_equal(bytes_, expected_bytes(16, counts))
    assert copy_lanes("16", counts, SOURCE[:499])[0] == ILLEGAL


def test_a_misaligned_source_is_a_fault():
    shifted = BODY.replace("[%l1], {}", "[%l1+4], {}")
    text = kernel(shifted.format(16), ["p0", "p1", "p2"]).replace("sm_90", "sm_80")
    launch = Launch("k", 1, 32, [np.zeros(512, np.uint8), np.zeros(1024, np.uint8), np.zeros(32, np.uint32)])
    assert run_image(text.encode() + b"\0", [launch], "ptx")[0][0][0] == MISALIGNED


@pytest.mark.parametrize(
    ("statement", "accepted"),
    [
        ("cp.async.cg.shared.global [s], [g], 16;", True),
        ("cp.async.cg.shared::cta.global.L2::128B [s], [g+16], 16, !%p1;", True),
        ("cp.async.ca.shared.global.L2::cache_hint [s], [g], 4, %r1, %l1;", True),
        ("cp.async.wait_group 3; cp.async.wait_all; cp.async.commit_group;", True),
        ("cp.async.cg.shared.global [s], [g], 8;", False),
        ("cp.async.ca.shared.global [s], [g], 2;", False),
        ("cp.async.ca.shared.global [s], [g], 16, 17;", False),
        ("cp.async.ca.shared.global [s], [g], %r1;", False),
        ("cp.async.ca.global.shared [s], [g], 4;", False),
        ("cp.async.shared.global [s], [g], 4;", False),
        ("cp.async.ca.shared.global [g], [g], 4;", False),
        ("cp.async.ca.shared.global [s], [s], 4;", False),
        ("cp.async.ca.shared.global [s], [g], 4, %l1;", False),
        ("cp.async.wait_group %r1;", False),
        ("cp.async.wait_group 1.0;", False),
        ("cp.async.wait_all 0;", False),
        ("cp.commit_group;", False),
    ],
)
def test_valid_forms_are_accepted_and_others_refused(device, statement, accepted):
    head = ".global .align 16 .b8 g[256];\n"
    result, module = device.load(kernel(f".shared .align 16 .b8 s[64]; {statement} ret;", [], head=head))
    assert result == 0
    assert (device.function(module)[0] == 0) == accepted
