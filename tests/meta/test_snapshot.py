"""Comparison of outputs by their bytes, and the distances that a record has."""

import random
import struct

import numpy as np
import pytest

from tfdet_probe.base.snapshot import Snapshot, max_difference

INF, NAN = float("inf"), float("nan")


def distance_between(first, second, dtype):
    """Return the distance of two arrays, after a check that both directions agree."""
    a, b = (Snapshot.from_arrays([np.array(values, dtype)]) for values in (first, second))
    assert max_difference(a, b) == max_difference(b, a)
    return max_difference(a, b)


def following(value, steps, dtype="float64"):
    """Return the float that is `steps` floats above the value."""
    for _ in range(abs(steps)):
        value = np.nextafter(np.array(value, dtype), np.array(np.copysign(INF, steps), dtype))
    return value


@pytest.mark.parametrize(
    ("one", "two", "dtype", "ulp", "absolute"),
    [
        ([1.0], [1.0], "float32", 0, 0.0),
        ([0.0], [-0.0], "float32", 0, 0.0),
        ([5e-324], [-5e-324], "float64", 2, 1e-323),
        ([1.0], [1.0 + 2**-23], "float32", 1, 2**-23),
        ([1.0], [1.0 + 2**-10], "float16", 1, 2**-10),
        ([-1.0], [1.0], "float16", 2 * 0x3C00, 2.0),
        ([-1e308], [0.5e308], "float64", 2 * struct.unpack("<q", struct.pack("<d", 1e308))[0] - (1 << 52), 1.5e308),
        ([65504.0], [INF], "float16", 1, None),
        ([-INF], [INF], "float64", 2 * (0x7FF << 52), None),
        ([NAN], [1.0], "float32", None, None),
        ([NAN, 1.0], [NAN, 1.5], "float32", 1 << 22, 0.5),
        ([INF, 1.0], [INF, 1.5], "float64", 1 << 51, 0.5),
        ([NAN, 1.0], [2.0, 1.5], "float32", None, None),
        ([True, False], [True, True], "bool", None, 1.0),
        ([3], [5], "int32", None, 2.0),
        ([-(2**63)], [2**63 - 1], "int64", None, float(2**64 - 1)),
        ([2**63 - 1], [2**63 - 2], "int64", None, 1.0),
        ([2**64 - 1], [2**64 - 4], "uint64", None, 3.0),
        ([3 + 4j], [0], "complex64", None, 5.0),
        (["a"], ["b"], object, None, None),
        ([b"a"], [b"b"], "S1", None, None),
        (["a"], ["b"], "U1", None, None),
        ([1], [2], "M8[s]", None, None),
    ],
)
def test_distance(one, two, dtype, ulp, absolute):
    assert distance_between(one, two, dtype) == (ulp, absolute)


def test_the_largest_of_many_distances_is_exact():
    # The distances must not be computed in float64, where rounding would make them equal.
    first = np.full(100, 1e300)
    second = first.copy()
    second[:50] = following(1e300, 1)
    second[70] = following(1e300, 3)
    assert max_difference(Snapshot.from_arrays([first]), Snapshot.from_arrays([second]))[0] == 3


def test_the_largest_of_many_outputs():
    first = Snapshot.from_arrays([np.float32([1.0]), np.float64([8.0]), np.int32([1])])
    second = Snapshot.from_arrays([np.float32([1.0]), np.float64([9.0]), np.int32([1])])
    assert max_difference(first, second) == (1 << 49, 1.0)
    third = Snapshot.from_arrays([np.float32([1.0]), np.float64([9.0]), np.int32([4])])
    assert max_difference(first, third) == (None, 3.0)  # integers have no ulp, so no number is right for all outputs


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([np.zeros(2)], [np.zeros(3)]),
        ([np.zeros(2)], [np.zeros((2, 1))]),
        ([np.zeros(2)], [np.zeros(2, "int64")]),
        ([np.zeros(2)], [np.zeros(2)] * 2),
        ([np.zeros((0, 1))], [np.zeros((1, 0))]),
        ([np.zeros(0)], []),
    ],
)
def test_other_forms_have_no_distance_and_other_digests(one, two):
    one, two = Snapshot.from_arrays(one), Snapshot.from_arrays(two)
    assert one.digest != two.digest
    assert max_difference(one, two) == (None, None)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([b"ab", b"c"], [b"a", b"bc"]),
        ([b"a"], [b"a\0"]),
        ([b"1"], [1]),
        (["1"], [b"1"]),
        ([1], [1.0]),
        ([1], [True]),
        ([None], ["None"]),
        ([0.0], [-0.0]),
        ([b"1:a"], [b"a"]),
        ([b"", b"a"], [b"a", b""]),
    ],
)
def test_objects_are_distinguished(one, two):
    assert Snapshot.from_arrays([np.array(one, object)]).digest != Snapshot.from_arrays([np.array(two, object)]).digest


def test_an_object_without_known_bytes_is_refused():
    with pytest.raises(TypeError, match="bytes are not known"):
        Snapshot.from_arrays([np.array([object()], object)])


def test_the_boundary_of_outputs_is_part_of_the_digest():
    first = Snapshot.from_arrays([np.array([b"a", b"b"], object), np.array([b"c"], object)])
    second = Snapshot.from_arrays([np.array([b"a"], object), np.array([b"b", b"c"], object)])
    assert first.digest != second.digest


def test_a_saved_snapshot_loads_unchanged(tmp_path):
    outputs = [
        np.array(3, "int8"),
        np.zeros((0, 2), "float16"),
        np.array([NAN, -0.0]),
        np.array([b"a\n\0", "b"], object),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array("x\n"),
    ]
    snapshot = Snapshot.from_arrays(outputs)
    snapshot.save(str(tmp_path / "it"))
    loaded = Snapshot.load(str(tmp_path / "it"))
    assert (snapshot.parts, snapshot.digest) == (loaded.parts, loaded.digest)


def test_memory_order_is_no_difference():
    value = np.arange(6.0).reshape(2, 3)
    assert Snapshot.from_arrays([value]).digest == Snapshot.from_arrays([np.asfortranarray(value)]).digest
    assert Snapshot.from_arrays([value]).digest != Snapshot.from_arrays([value.T]).digest


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "complex64", "uint8"])
def test_any_flipped_bit_is_seen(dtype):
    rng = random.Random(dtype)
    for _ in range(200):
        value = np.frombuffer(rng.randbytes(np.dtype(dtype).itemsize * rng.randint(1, 300)), dtype)
        bit = rng.randrange(value.nbytes * 8)
        raw = bytearray(value.tobytes())
        raw[bit // 8] ^= 1 << bit % 8
        other = np.frombuffer(bytes(raw), dtype)
        one, two = Snapshot.from_arrays([value]), Snapshot.from_arrays([other])
        assert one.digest != two.digest
        ulp, absolute = max_difference(one, two)
        assert ulp is None or ulp >= 0
        assert absolute is None or np.isfinite(absolute)


def test_ulp_agrees_with_counting():
    rng = random.Random(7)
    for _ in range(100):
        start = rng.choice([0.0, 5e-324, 1.0, -1.0, 2.0**52, -1e300]) * rng.choice([1, 1 + 2e-16])
        steps = rng.randint(-9, 9)
        other = float(following(start, steps))
        if np.float64(start).tobytes() != np.float64(other).tobytes():
            assert distance_between([start], [other], "float64")[0] == abs(steps)
