"""Communication between lanes: shfl, vote, match, redux, elect, activemask, with partial masks and clamps."""

import numpy as np
import pytest
from operands import assert_same, signed, wrap
from virtual_device import HEAD, kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

FULL = 0xFFFFFFFF
OLDER = ".version 6.3\n.target sm_60\n.address_size 64\n"  # for which the mask is optional
LANES = range(32)


def warp_rows(count, seed=0, values=1 << 32):
    """Return the values of the lanes of each warp, and a mask per warp that divides it into two groups.

    The second group may be empty.
    """
    rng = np.random.default_rng(seed)
    x = rng.integers(0, values, (count, 32), np.uint64).astype(np.uint32)
    masks = rng.integers(0, 1 << 32, count, np.uint64).astype(np.uint32) | np.uint32(1)
    masks[:4] = [FULL, 1, 0x80000001, 0xFFFF]
    return x, masks


def warps(device, body, *columns, out=2, head=HEAD):
    """Run one warp per row: %m is the mask of the lanes on the same branch, %x the value; the body sets %d and %e."""
    count = len(columns[0])
    loads = "".join(
        f"ld.param.u64 %l0, [p{k}]; add.u64 %l0, %l0, %l1; ld.global.u32 %{name}, [%l0];\n"
        for k, name in zip(range(len(columns)), "xmyz", strict=False)
    )
    stores = "".join(
        f"ld.param.u64 %l0, [p{len(columns) + k}]; add.u64 %l0, %l0, %l1; st.global.u32 [%l0], %{name};\n"
        for k, name in zip(range(out), "de", strict=False)
    )
    text = kernel(
        f""".reg .b32 %x, %m, %y, %z, %d, %e, %bit; mul.wide.u32 %l1, %i, 4;
    {loads} mov.u32 %d, 0; mov.u32 %e, 0; mov.u32 %bit, %lanemask_eq; and.b32 %bit, %bit, %m; setp.ne.u32 %p7, %bit, 0;
    @!%p7 not.b32 %m, %m;
    @%p7 bra first;
    {body.replace("MASK", "%m")} bra.uni done;
    first: {body.replace("MASK", "%m")}
    done: {stores}""",
        [f"p{k}" for k in range(len(columns) + out)],
    ).replace(HEAD, head)
    spread = [np.repeat(column, 32) if column.ndim == 1 else column.ravel() for column in columns]
    code, arrays = device.run(text, [*spread, *[np.zeros(32 * count, np.uint32)] * out], count, 32)
    assert code == 0
    results = [array.reshape(count, 32) for array in arrays[len(columns) :]]
    return results[0] if out == 1 else results


def peers(mask, lane):
    """Return the mask of the lanes in the same group as this lane."""
    return mask if mask >> lane & 1 else ~mask & FULL


def shuffled(mode, values, mask, lane, b, c):
    """Return (value, predicate) of shfl.sync by its definition; the value is None if it is unspecified."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    limit, segment_start = (lane & segment) | (clamp & ~segment), lane & segment
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": segment_start | (b & ~segment)}[mode]
    is_inside = source >= limit if mode == "up" else source <= limit
    source = source if is_inside else lane
    return (values[source] if peers(mask, lane) >> source & 1 else None), int(is_inside)


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shuffles(device, mode):
    x, masks = warp_rows(200)
    rng = np.random.default_rng(1)
    y = rng.integers(0, 40, x.shape).astype(np.uint32)
    z = rng.choice([0, 31, 0x1F, 0x1C03, 0x181F, 0x1000, 0x1E01, 0x100F, 0x1F1F], x.shape).astype(np.uint32)
    d, e = warps(device, f"shfl.sync.{mode}.b32 %d|%p1, %x, %y, %z, MASK; selp.u32 %e, 1, 0, %p1;", x, masks, y, z)
    for row, mask in enumerate(masks.tolist()):
        for lane in LANES:
            expected = shuffled(mode, x[row], mask, lane, int(y[row, lane]), int(z[row, lane]))
            assert e[row, lane] == expected[1]
            assert expected[0] is None or d[row, lane] == expected[0]


def test_shuffles_without_a_mask(device):
    x, _ = warp_rows(50)
    d = warps(device, "shfl.bfly.b32 %d, %x, 5, 31;", x, np.full(50, FULL, np.uint32), out=1, head=OLDER)
    assert_same(d.ravel(), x[:, [lane ^ 5 for lane in LANES]].ravel(), x.ravel())


@pytest.mark.parametrize("negated", ["", "!"])
def test_votes(device, negated):
    for values in (2, 40):  # with 40, the predicate often holds in all lanes
        x, masks = warp_rows(200, values, values)
        predicates = (x != 0) != bool(negated)
        set_predicate = "setp.ne.u32 %p1, %x, 0;"
        expected = {"all": all, "any": any, "uni": lambda row: len(set(row)) == 1}
        for mode, reference in expected.items():
            d = warps(
                device,
                f"{set_predicate} vote.sync.{mode}.pred %p2, {negated}%p1, MASK; selp.u32 %d, 1, 0, %p2;",
                x,
                masks,
                out=1,
            )
            for row, mask in enumerate(masks.tolist()):
                for lane in LANES:
                    group = [bool(predicates[row, k]) for k in LANES if peers(mask, lane) >> k & 1]
                    assert d[row, lane] == reference(group)
        d = warps(device, f"{set_predicate} vote.sync.ballot.b32 %d, {negated}%p1, MASK;", x, masks, out=1)
        for row, mask in enumerate(masks.tolist()):
            ballot = sum(1 << k for k in LANES if predicates[row, k])
            assert d[row].tolist() == [ballot & peers(mask, lane) for lane in LANES]


@pytest.mark.parametrize("bits", [32, 64])
def test_matches(device, bits):
    x, masks = warp_rows(200, 3, 5)
    x[100:] = x[100:, :1]  # equal values in all lanes
    wide = "" if bits == 32 else "mov.b64 %l2, {%x, %x};"
    value = "%x" if bits == 32 else "%l2"
    d = warps(device, f"{wide} match.any.sync.b{bits} %d, {value}, MASK;", x, masks, out=1)
    all_mask, e = warps(
        device, f"{wide} match.all.sync.b{bits} %d|%p1, {value}, MASK; selp.u32 %e, 1, 0, %p1;", x, masks
    )
    for row, mask in enumerate(masks.tolist()):
        for lane in LANES:
            group = peers(mask, lane)
            equal = sum(1 << k for k in LANES if group >> k & 1 and x[row, k] == x[row, lane])
            assert d[row, lane] == equal
            assert (all_mask[row, lane], e[row, lane]) == ((group, 1) if equal == group else (0, 0))


REDUCED = {"add": sum, "min": min, "max": max, "and": None, "or": None, "xor": None}


@pytest.mark.parametrize("type", ["u32", "s32", "b32"])
@pytest.mark.parametrize("op", REDUCED)
def test_reductions(device, op, type):
    if (type == "b32") != (REDUCED[op] is None):
        pytest.skip("PTX has no such reduction")
    x, masks = warp_rows(200, 4)
    d = warps(device, f"redux.sync.{op}.{type} %d, %x, MASK;", x, masks, out=1)
    for row, mask in enumerate(masks.tolist()):
        for lane in LANES:
            group = [int(x[row, k]) for k in LANES if peers(mask, lane) >> k & 1]
            group = [signed(value, 32) for value in group] if type == "s32" else group
            reference = REDUCED[op] or (lambda values: int(getattr(np, f"bitwise_{op}").reduce(values)))
            assert d[row, lane] == wrap(reference(group), 32)


def test_elect(device):
    x, masks = warp_rows(50)
    d, e = warps(device, "elect.sync %d|%p1, MASK; selp.u32 %e, 1, 0, %p1;", x, masks)
    for row, mask in enumerate(masks.tolist()):
        for group in {peers(mask, lane) for lane in LANES}:
            members = [lane for lane in LANES if group >> lane & 1]
            assert sum(e[row, members]) == 1
            assert {int(lane) for lane in d[row, members]} == {
                int(np.nonzero(e[row] * [lane in members for lane in LANES])[0][0])
            }


def test_activemask_has_the_active_lanes(device):
    """In a branch, the lanes that took it are active; behind it, all lanes but the exited ones."""
    x, masks = warp_rows(50)
    d = warps(device, "activemask.b32 %d;", x, masks, out=1)
    for row, mask in enumerate(masks.tolist()):
        assert d[row].tolist() == [peers(mask, lane) for lane in LANES]
    text = kernel(
        """setp.lt.u32 %p0, %t, 8; @%p0 exit; setp.gt.u32 %p1, %t, 20; @%p1 bra away; mov.u32 %r1, 1;
    away: activemask.b32 %r2; vote.sync.ballot.b32 %r3, 1, 0xffffffff; ld.param.u64 %l0, [p0]; mul.wide.u32 %l1, %t, 8;
    add.u64 %l0, %l0, %l1; st.global.v2.u32 [%l0], {%r2, %r3};""",
        ["p0"],
    )
    code, (results,) = device.run(text, [np.zeros(64, np.uint32)])
    assert (code, results[16:].tolist()) == (0, [0xFFFFFF00] * 48)
    assert not results[:16].any()


def test_lane_mask_registers(device):
    names = ["eq", "lt", "le", "gt", "ge"]
    expected = [
        lambda k: 1 << k,
        lambda k: (1 << k) - 1,
        lambda k: (2 << k) - 1,
        lambda k: FULL & -(2 << k),
        lambda k: FULL & -(1 << k),
    ]
    for name, reference in zip(names, expected, strict=True):
        results = device.evaluate(f"mov.u32 %d, %lanemask_{name};", [np.uint32], np.zeros(64, np.uint32))
        assert results.tolist() == [reference(k % 32) for k in range(64)]
