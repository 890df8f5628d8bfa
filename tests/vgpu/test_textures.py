"""Texture objects: fetches from arrays and linear memory against the programming guide's formulas."""

import ctypes

import numpy as np
import pytest
from bare_program import run_program  # the code finds cuda, text, load(), allocate(), free(), launch(), words()
from texturing import (
    BORDER,
    CLAMP,
    GATHER,
    LAYERED,
    LINEAR,
    MIRROR,
    NORMALIZED,
    POINT,
    READ_AS_INTEGER,
    SRGB,
    WRAP,
    Linear,
    Resource,
    Union,
    fetched,  # the channels by the programming guide's formulas
    sampler,
)
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

INVALID_VALUE, INVALID_HANDLE, ILLEGAL_ADDRESS, NOT_SUPPORTED = 1, 400, 700, 801
NAMES = {1: "{%f4}", 2: "{%f4, %f5}", 3: "{%f4, %f5, %f6, %f6}"}
COORDINATES = """.reg .b32 %f<12>; .reg .b64 %tex, %at; ld.param.u64 %tex, [p0]; ld.param.u64 %at, [p1];
mul.wide.u32 %l1, %i, 16; add.u64 %at, %at, %l1;
ld.global.v4.b32 {%f4, %f5, %f6, %f7}, [%at];"""
STORE_RESULT = """ld.param.u64 %at, [p2]; mul.wide.u32 %l1, %i, 16; add.u64 %at, %at, %l1;
st.global.v4.b32 [%at], {%f0, %f1, %f2, %f3};"""


def fetch_kernel(statement):
    """Return a kernel with this fetch."""
    return kernel(f"{COORDINATES}\n{statement}\n{STORE_RESULT}", ["p0", "p1", "p2"])


def fetch_kernel_of(dimensions, type_="f32", coordinates="f32"):
    """Return a kernel with a fetch of this geometry."""
    return fetch_kernel(
        f"tex.{dimensions}d.v4.{type_}.{coordinates} {{%f0, %f1, %f2, %f3}}, [%tex, {NAMES[dimensions]}];"
    )


def results(arrays, text, handle, coordinates, dtype=np.float32):
    """Return the four channels that each thread's fetch gives; the coordinates are x, y, z, and one more."""
    rows = np.zeros((len(coordinates), 4), coordinates.dtype)
    rows[:, : coordinates.shape[1]] = coordinates
    result, (_, _, texels) = arrays.device.run(
        text, [handle, rows, np.zeros((len(rows), 4), dtype)], grid=1, block=len(rows)
    )
    assert result == 0
    return texels


def places(dimensions, normalized, sizes, count=64):
    """Return coordinates around both ends of each dimension, at centers of texels and between them."""
    rng = np.random.default_rng(dimensions)
    spread = rng.uniform(-1.6, 2.6, (count, dimensions)) * np.array(sizes[::-1])
    spread[: count // 4] = np.round(spread[: count // 4] * 2) / 2
    return (spread / np.array(sizes[::-1]) if normalized else spread).astype(np.float32)


@pytest.mark.parametrize("filter_", [POINT, LINEAR])
@pytest.mark.parametrize(
    ("address", "flags"),
    [(CLAMP, 0), (BORDER, 0), (WRAP, 0), *((mode, NORMALIZED) for mode in (WRAP, CLAMP, MIRROR, BORDER))],
)
@pytest.mark.parametrize("sizes", [(7,), (5, 8), (3, 4, 5)])
def test_a_fetch_gives_what_the_programming_guide_says(arrays, sizes, address, flags, filter_):
    texels = np.random.default_rng(1).normal(size=(*sizes, 4)).astype(np.float32)
    texture_sampler = sampler(address, filter_, flags, border=(1.5, -2, 0.25, 1))
    points = places(len(sizes), flags, sizes)
    fetches = results(arrays, fetch_kernel_of(len(sizes)), arrays.texture(texels, texture_sampler), points)
    np.testing.assert_array_equal(fetches, [fetched(texels, point, texture_sampler) for point in points])


def test_each_dimension_has_its_own_address_mode(arrays):
    texels = np.arange(15, dtype=np.float32).reshape(3, 5, 1)
    texture_sampler = sampler((MIRROR, WRAP, CLAMP), LINEAR, NORMALIZED)
    points = places(2, True, (3, 5))
    fetches = results(arrays, fetch_kernel_of(2), arrays.texture(texels, texture_sampler), points)
    np.testing.assert_array_equal(fetches[:, :1], [fetched(texels, point, texture_sampler) for point in points])


@pytest.mark.parametrize("name", ["u1", "i1", "u2", "i2", "f2"])
@pytest.mark.parametrize("filter_", [POINT, LINEAR])
def test_small_texels_are_read_as_floats(arrays, name, filter_):
    rng = np.random.default_rng(2)
    is_integer = np.dtype(name).kind != "f"
    texels = rng.integers(*((np.iinfo(name).min, np.iinfo(name).max + 1) if is_integer else (-50, 50)), (4, 6, 2))
    texels = texels.astype(name)
    texels[0, 0] = np.iinfo(name).min if is_integer else np.inf if filter_ == POINT else 1
    texture_sampler = sampler(CLAMP, filter_)
    points = places(2, False, (4, 6))
    fetches = results(arrays, fetch_kernel_of(2), arrays.texture(texels, texture_sampler), points)
    np.testing.assert_array_equal(fetches[:, :2], [fetched(texels, point, texture_sampler) for point in points])


@pytest.mark.parametrize("name", ["u1", "i1", "u2", "i2", "u4", "i4"])
def test_integers_are_read_as_they_are(arrays, name):
    texels = np.random.default_rng(3).integers(np.iinfo(name).min, np.iinfo(name).max, (4, 6, 4), name, endpoint=True)
    texture_sampler = sampler(CLAMP, POINT, READ_AS_INTEGER)
    points = places(2, False, (4, 6))
    dtype = np.int32 if name[0] == "i" else np.uint32
    fetches = results(arrays, fetch_kernel_of(2, "s32"), arrays.texture(texels, texture_sampler), points, dtype)
    np.testing.assert_array_equal(fetches, [fetched(texels, point, texture_sampler).astype(dtype) for point in points])
    arrays.object(
        Resource(0, Union(array=arrays.array(texels))), sampler(CLAMP, LINEAR, READ_AS_INTEGER), status=INVALID_VALUE
    )


def test_nan_texels_are_kept_and_a_nan_coordinate_is_0(arrays):
    texels = np.array([[0x7F812345], [0x3F800000], [0xFFC00001]], np.uint32).view(np.float32)
    points = np.array([[0], [2], [np.nan], [np.inf], [-np.inf], [1e30]], np.float32)
    fetches = results(arrays, fetch_kernel_of(1), arrays.texture(texels, sampler()), points).view(np.uint32)
    assert fetches[:, 0].tolist() == [texels.view(np.uint32)[k, 0] for k in (0, 2, 0, 2, 0, 2)]
    for mode in (WRAP, MIRROR):
        handle = arrays.texture(texels, sampler(mode, flags=NORMALIZED))
        assert (
            results(arrays, fetch_kernel_of(1), handle, points[2:5]).view(np.uint32)[:, 0]
            == texels.view(np.uint32)[0, 0]
        ).all()


def test_missing_channels_are_0_and_the_last_is_1(arrays):
    handle = arrays.texture(np.full((2, 2, 1), 5, np.float32), sampler())
    assert results(arrays, fetch_kernel_of(2), handle, np.zeros((1, 2), np.float32)).tolist() == [[5, 0, 0, 1]]


@pytest.mark.parametrize("shape", [(4, 8, 1), (4, 3, 8, 1)])
def test_layers_are_separate_and_their_index_is_clamped(arrays, shape):
    texels = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    texture_sampler = sampler(CLAMP, LINEAR)
    handle = arrays.texture(texels, texture_sampler, LAYERED)
    dimensions = len(shape) - 2
    points = places(dimensions, False, shape[1:-1], 32)
    layers = np.arange(32, dtype=np.int32) % 6
    coordinates = np.zeros((32, 4), np.int32)
    coordinates[:, :dimensions], coordinates[:, 3] = points.view(np.int32), layers
    names = {1: "{%f7, %f4}", 2: "{%f7, %f4, %f5, %f5}"}[dimensions]
    fetches = results(
        arrays,
        fetch_kernel(f"tex.a{dimensions}d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%tex, {names}];"),
        handle,
        coordinates,
    )
    expected = [
        fetched(texels[min(layer, 3)], point, texture_sampler) for layer, point in zip(layers, points, strict=True)
    ]
    np.testing.assert_array_equal(fetches[:, :1], expected)


def linear(address, format_, channels, *sizes):
    """Return the resource of linear memory."""
    return Union(linear=Linear(address.value, format_, channels, sizes))


def test_linear_memory_is_fetched_by_index_and_outside_of_it_is_zero(arrays):
    data = np.arange(1, 41, dtype=np.float32)
    address = arrays.device.allocate(data.nbytes)
    assert arrays.cuda.cuMemcpyHtoD_v2(address, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)) == 0
    texture_sampler = sampler(BORDER, LINEAR, border=(9, 9, 9, 9))  # linear memory ignores all of it
    handle = arrays.object(Resource(2, linear(address, 32, 1, data.nbytes)), texture_sampler)
    indices = [-1, 0, 39, 40, -(2**31), 2**31 - 1]
    fetches = results(arrays, fetch_kernel_of(1, "f32", "s32"), handle, np.array(indices, np.int32)[:, None])
    assert fetches[:, 0].tolist() == [0, 1, 40, 0, 0, 0]


def test_rows_with_a_pitch_are_filtered(arrays):
    width, height, pitch = 6, 4, 64
    rows = np.random.default_rng(5).normal(size=(height, pitch // 4)).astype(np.float32)
    address = arrays.device.allocate(rows.nbytes)
    assert arrays.cuda.cuMemcpyHtoD_v2(address, ctypes.c_void_p(rows.ctypes.data), ctypes.c_size_t(rows.nbytes)) == 0
    texture_sampler = sampler(WRAP, LINEAR, NORMALIZED)
    handle = arrays.object(Resource(3, linear(address, 32, 1, width, height, pitch)), texture_sampler)
    points = places(2, True, (height, width))
    fetches = results(arrays, fetch_kernel_of(2), handle, points)
    np.testing.assert_array_equal(
        fetches[:, :1], [fetched(rows[:, :width, None], point, texture_sampler) for point in points]
    )
    for sizes in [(17, height, pitch), (width, height, 48), (width, 65001, pitch), (width, 10**4, pitch)]:
        arrays.object(Resource(3, linear(address, 32, 1, *sizes)), texture_sampler, status=INVALID_VALUE)


def test_a_gather_gives_one_channel_of_four_texels(arrays):
    texels = np.arange(3 * 4 * 4, dtype=np.float32).reshape(3, 4, 4)
    handle = arrays.texture(texels, sampler(), GATHER)
    points = np.array([[1.5, 1.25], [2, 1]], np.float32)
    for channel, letter in enumerate("rgba"):
        text = fetch_kernel(f"tld4.{letter}.2d.v4.f32.f32 {{%f0, %f1, %f2, %f3}}, [%tex, {{%f4, %f5}}];")
        expected = [[texels[y, x, channel] for y, x in ((1, 1), (1, 2), (0, 2), (0, 1))]] * 2
        assert results(arrays, text, handle, points).tolist() == expected


def test_without_mipmaps_every_level_is_the_first_and_all_texels_are_there(arrays):
    texels = np.arange(12, dtype=np.float32).reshape(3, 4, 1)
    handle, points = arrays.texture(texels, sampler()), np.array([[2.5, 1.5, 3]], np.float32)
    for statement in [
        "tex.level.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f4, %f5}], %f6;",
        "tex.grad.2d.v4.f32.f32 {%f0, _, _, _}, [%tex, {%f4, %f5}], {%f6, %f6}, {%f6, %f6};",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}|%p1, [%tex, {%f4, %f5}]; @!%p1 mov.b32 %f0, 0;",
    ]:
        assert results(arrays, fetch_kernel(statement), handle, points)[0, 0] == texels[1, 2, 0]


def test_a_texture_tells_its_size(arrays):
    handle = arrays.texture(np.zeros((5, 3, 7, 1), np.float32), sampler(flags=NORMALIZED), LAYERED)
    queries = ("width", "height", "array_size", "normalized_coords")
    text = fetch_kernel("".join(f"txq.{query}.b32 %f{k}, [%tex];" for k, query in enumerate(queries)))
    assert results(arrays, text, handle, np.zeros((1, 1), np.float32), np.uint32).tolist() == [[7, 3, 5, 1]]


def test_lanes_may_have_textures_of_their_own(arrays):
    handles = [arrays.texture(np.full((2, 1), k, np.float32), sampler()) for k in range(3)]
    text = fetch_kernel("add.u32 %r1, %i, 0; rem.u32 %r1, %r1, 3; cvt.u64.u32 %l2, %r1; add.u64 %tex, %tex, %l2;"
                 "tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f4}];")  # fmt: skip
    assert handles == list(range(handles[0], handles[0] + 3))
    fetches = results(arrays, text, handles[0], np.zeros((40, 1), np.float32))
    assert fetches[:, 0].tolist() == [k % 3 for k in range(40)]


def test_a_texture_over_what_is_freed_or_a_handle_that_is_none_ends_the_launch(device):
    """Each fault is in a process of its own, as it ends the context."""
    text = fetch_kernel_of(1)
    code = """
class Descriptor(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t * 3), ("rest", ctypes.c_uint * 3))
class Resource(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("array", ctypes.c_void_p), ("rest", ctypes.c_int * 34))
array, handle, surface = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()
assert cuda.cuArray3DCreate_v2(ctypes.byref(array), ctypes.byref(Descriptor((8, 0, 0), (32, 1, 2)))) == 0
resource = ctypes.byref(Resource(0, array))
assert cuda.cuTexObjectCreate(ctypes.byref(handle), resource, (ctypes.c_int * 64)(1, 1, 1), None) == 0
assert cuda.cuSurfObjectCreate(ctypes.byref(surface), resource) == 0
at, out, function = allocate(512), allocate(512), load(text)
fine = launch(function, handle.value, at, out)
"""
    changes = {
        "assert cuda.cuArrayDestroy(array) == 0": ("handle.value", ILLEGAL_ADDRESS),
        "assert cuda.cuTexObjectDestroy(handle) == 0": ("handle.value", ILLEGAL_ADDRESS),
        "": ("surface.value", ILLEGAL_ADDRESS),
        "pass": ("2**64 - 1", ILLEGAL_ADDRESS),
    }
    for change, (handle, result) in changes.items():
        numbers, stderr = run_program(device, f"{code}{change}\nprint(fine, launch(function, {handle}, at, out))", text)
        assert numbers == [0, result]
        assert "texture or surface object" in stderr


def test_invalid_objects_and_arrays_are_errors(arrays):
    cuda, address = arrays.cuda, ctypes.c_uint64()
    wild = ctypes.c_void_p(0x1234560)
    assert cuda.cuTexObjectDestroy(ctypes.c_uint64(2**60)) == INVALID_VALUE
    assert cuda.cuTexObjectGetResourceDesc(ctypes.byref(Resource()), ctypes.c_uint64(0)) == INVALID_VALUE
    arrays.object(Resource(0, Union(array=wild)), sampler(), status=INVALID_HANDLE)
    arrays.object(Resource(0, Union(array=None)), sampler(), status=INVALID_VALUE)
    arrays.object(Resource(2, linear(address, 32, 1, 400)), sampler(), status=INVALID_VALUE)
    arrays.object(Resource(9), sampler(), status=INVALID_VALUE)
    texels = np.zeros((4, 4, 1), np.float32)
    resource = Resource(0, Union(array=arrays.array(texels)))
    for texture_sampler in (sampler(5), sampler(filter=2), sampler(flags=0x100)):
        arrays.object(resource, texture_sampler, status=INVALID_VALUE)
    handle = arrays.object(resource, sampler())
    assert cuda.cuSurfObjectDestroy(ctypes.c_uint64(handle)) == INVALID_VALUE, "it is a texture"
    assert [cuda.cuTexObjectDestroy(ctypes.c_uint64(handle)) for _ in range(2)] == [0, INVALID_VALUE]


def test_unsupported_features_are_refused(arrays):
    texels = np.zeros((4, 4, 1), np.float32)
    resource = Resource(0, Union(array=arrays.array(texels)))
    arrays.object(resource, sampler(flags=SRGB), status=NOT_SUPPORTED)
    arrays.object(Resource(1, resource.of), sampler(), status=NOT_SUPPORTED)
    numbers = Resource(0, Union(array=arrays.array(texels.astype(np.uint8))))
    arrays.object(numbers, sampler(BORDER, POINT, READ_AS_INTEGER, (1, 0, 0, 0)), status=NOT_SUPPORTED)
    result = arrays.cuda.cuTexObjectCreate(
        ctypes.byref(ctypes.c_uint64()), ctypes.byref(resource), ctypes.byref(sampler()), ctypes.byref(resource)
    )
    assert result == NOT_SUPPORTED


@pytest.mark.parametrize(
    "statement",
    [
        "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f4, %f5, %f6, %f6}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, %tex, {%f4, %f5}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f4}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [named, {%f4, %f5}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%r1, {%f4, %f5}];",
        "tex.2d.v4.f32 {%f0, %f1, %f2, %f3}, [%tex, {%f4, %f5}];",
        "ld.global.f32 %f0, [%tex, {%f4, %f5}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, " + "[%tex, {" * 30000 + "}" * 30000 + ";",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, " + "[%tex, " * 30000 + ";",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex,",
        "txq.channel_order.b32 %f0, [%tex];",
    ],
)
def test_other_forms_are_refused(device, statement):
    device.assert_refused(fetch_kernel(statement).replace(".visible", ".global .b64 named;\n.visible", 1))


def test_a_texture_or_surface_reference_is_refused_by_its_name(device):
    for type_ in ("texref", "surfref", "samplerref"):
        text = kernel("", ["p0"], head=f".global .{type_} old;\n")
        result, module = device.load(text)
        assert result != 0 or device.function(module)[0] != 0
