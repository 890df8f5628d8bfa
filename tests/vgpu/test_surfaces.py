"""Surface objects: loads and stores inside and outside of an array, and the checks of races and uninitialized reads."""

import ctypes
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from bare_program import run_program  # the code finds cuda, text, load(), allocate(), free(), launch(), words()
from texturing import (
    LAYERED,
    LINEAR,
    NORMALIZED,
    READ_AS_INTEGER,
    WRAP,
    Linear,
    Resource,
    Union,
    fetched,
    sampler,
)
from virtual_device import kernel  # kernel: a PTX kernel; %i is the thread in the grid, %t in the block

INVALID_VALUE, ILLEGAL_ADDRESS, MISALIGNED = 1, 700, 716
PLACES = {
    "1d": "{%s0}", "2d": "{%s0, %s1}", "3d": "{%s0, %s1, %s2, %s2}",
    "a1d": "{%s3, %s0}", "a2d": "{%s3, %s0, %s1, %s1}",
}  # fmt: skip
PROLOGUE = """.reg .b32 %s<4>, %v<4>; .reg .b64 %o, %at, %w<2>; .reg .b16 %c<4>;
ld.param.u64 %o, [p0]; ld.param.u64 %at, [p1]; mul.wide.u32 %l1, %i, 16; add.u64 %at, %at, %l1;
ld.global.v4.b32 {%s0, %s1, %s2, %s3}, [%at]; ld.param.u64 %at, [p2]; add.u64 %at, %at, %l1;"""


def program(body):
    """Return a kernel that runs the body at each thread's coordinates."""
    return kernel(f"{PROLOGUE}\n{body}", ["p0", "p1", "p2"])


def loads(geometry, outside):
    """Return a kernel of surface loads; outside: what happens outside of the surface (trap, clamp, zero)."""
    return program(f"suld.b.{geometry}.b32.{outside} {{%v0}}, [%o, {PLACES[geometry]}]; st.global.b32 [%at], %v0;")


def stores(geometry, outside):
    """Return a kernel of surface stores."""
    return program(f"ld.global.b32 %v0, [%at]; sust.b.{geometry}.b32.{outside} [%o, {PLACES[geometry]}], {{%v0}};")


def launch(arrays, text, handle, places, values=None):
    """Run the kernel at these places; return CUDA's result and the words."""
    coordinates = np.zeros((len(places), 4), np.int32)
    coordinates[:, : places.shape[1]] = places
    words = np.zeros((len(places), 4), np.uint32)
    if values is not None:
        words[:, 0] = values
    result, (_, _, results) = arrays.device.run(text, [handle, coordinates, words], block=len(places))
    return result, results


GEOMETRIES = {"1d": (9,), "2d": (4, 6), "3d": (2, 3, 4), "a1d": (3, 5), "a2d": (2, 3, 4)}


def list_places(geometry, around=0):
    """Yield (coordinates, index) of each word of the array, and of words up to `around` outside of it.

    The coordinates are x in bytes, y, z and the layer.
    """
    shape = GEOMETRIES[geometry]
    ranges = [range(0 if geometry[0] == "a" and k == 0 else -around, n + around) for k, n in enumerate(shape)]
    for index in product(*ranges):
        *outer, x = index
        layer = [outer.pop(0)] if geometry[0] == "a" else [0]
        row_and_slice = [*outer[::-1], 0, 0][:2]
        yield [4 * x, *row_and_slice, *layer], index


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_words_are_loaded_and_stored_where_they_lie(arrays, geometry):
    shape = GEOMETRIES[geometry]
    texels = np.random.default_rng(1).integers(0, 2**32, (*shape, 1), np.uint32)
    flags = LAYERED if geometry[0] == "a" else 0
    array, handle = arrays.surface(texels, flags)
    places = np.array([place for place, _ in list_places(geometry)])
    result, words = launch(arrays, loads(geometry, "trap"), handle, places)
    assert result == 0
    assert words[:, 0].tolist() == [texels[index][0] for _, index in list_places(geometry)]
    assert launch(arrays, stores(geometry, "trap"), handle, places, np.arange(len(places)))[0] == 0
    expected = np.arange(len(places), dtype=np.uint32).reshape(texels.shape)
    np.testing.assert_array_equal(arrays.read(array, texels), expected)


@pytest.mark.parametrize("outside", ["clamp", "zero"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_accesses_outside_are_clamped_or_zero(arrays, geometry, outside):
    shape = GEOMETRIES[geometry]
    flags = LAYERED if geometry[0] == "a" else 0
    texels = np.arange(1, np.prod(shape) + 1, dtype=np.uint32).reshape(*shape, 1)
    array, handle = arrays.surface(texels, flags)
    around = list(list_places(geometry, around=2))
    inside = [all(0 <= k < n for k, n in zip(index, shape, strict=True)) for _, index in around]
    nearest = [tuple(np.clip(index, 0, np.array(shape) - 1)) for _, index in around]
    places = np.array([place for place, _ in around])
    result, words = launch(arrays, loads(geometry, outside), handle, places)
    assert result == 0
    expected = [
        texels[texel][0] if outside == "clamp" or is_inside else 0
        for texel, is_inside in zip(nearest, inside, strict=True)
    ]
    assert words[:, 0].tolist() == expected
    assert launch(arrays, stores(geometry, outside), handle, places, np.full(len(places), 7))[0] == 0
    assert (arrays.read(array, texels) == 7).all(), "each place was written, and nothing else"


@pytest.mark.parametrize(
    ("type_", "vector", "registers"),
    [("b8", "", "{%c0}"), ("b8", "v4.", "{%c0, %c1, %c2, %c3}"), ("b16", "v2.", "{%c0, %c1}"), ("b64", "", "{%w0}"),
     ("b64", "v2.", "{%w0, %w1}"), ("b32", "v4.", "{%v0, %v1, %v2, %v3}"), ("b32", "v2.", "{%v3, %v2}")],
)  # fmt: skip
def test_elements_of_every_size_are_copied(arrays, type_, vector, registers):
    piece = int(type_[1:]) // 8 * int(vector[1:2] or 1)
    texels = np.random.default_rng(2).integers(0, 256, (3, 32, 1), np.uint8)
    array, handle = arrays.surface(texels)
    move = f"suld.b.2d.{vector}{type_}.trap {registers}, [%o, {{%s0, 0}}];"
    text = program(f"{move} sust.b.2d.{vector}{type_}.trap [%o, {{%s0, 2}}], {registers};")
    places = np.arange(0, 32, 2 * piece)[:, None]
    assert launch(arrays, text, handle, places)[0] == 0
    for offset in range(0, 32, 2 * piece):
        texels[2, offset : offset + piece] = texels[0, offset : offset + piece]
    np.testing.assert_array_equal(arrays.read(array, texels), texels)


@pytest.mark.parametrize(
    ("operation", "type_", "made"),
    [("add", "u32", [14, 7, 3, 2**32 - 2]), ("min", "s32", [1, 7, 3, 2**32 - 7]), ("min", "u32", [1, 7, 3, 5]),
     ("max", "s32", [7, 7, 3, 5]), ("max", "u32", [7, 7, 3, 2**32 - 7]), ("and", "b32", [0, 7, 3, 1]),
     ("or", "b32", [7, 7, 3, 2**32 - 3])],
)  # fmt: skip
def test_reductions_change_what_lies_there_once_for_each_thread(arrays, operation, type_, made):
    array, handle = arrays.surface(np.array([[[7], [7], [3], [5]]], np.uint32))
    places = np.array([[0, 0], [0, 0], [0, 0], [12, 0], [16, 0], [0, 1]])
    body = f"ld.global.b32 %v0, [%at]; sured.b.{operation}.2d.{type_}.zero [%o, {{%s0, %s1}}], %v0;"
    values = [1, 2, 4, 2**32 - 7, 9, 9]
    assert launch(arrays, program(body), handle, places, values)[0] == 0
    assert arrays.read(array, np.zeros((1, 4, 1), np.uint32)).ravel().tolist() == made


def test_a_surface_tells_its_size(arrays):
    _, handle = arrays.surface(np.zeros((5, 3, 7, 1), np.float32))
    text = program(
        "suq.width.b32 %v0, [%o]; suq.height.b32 %v1, [%o]; suq.depth.b32 %v2, [%o]; suq.array_size.b32 %v3, [%o];"
        "st.global.v4.b32 [%at], {%v0, %v1, %v2, %v3};"
    )
    assert launch(arrays, text, handle, np.zeros((1, 1)))[1].tolist() == [[7, 3, 5, 1]]


def test_a_kernel_that_nvcc_compiled_reads_textures_and_writes_a_surface(arrays):
    width, height, rng = 11, 6, np.random.default_rng(4)
    image = rng.normal(size=(5, 7, 4)).astype(np.float32)
    texture_sampler = sampler(WRAP, LINEAR, NORMALIZED)
    numbers = rng.integers(0, 256, (width * height, 4), np.uint8)
    address = arrays.device.allocate(numbers.nbytes)
    data, bytes_ = ctypes.c_void_p(numbers.ctypes.data), ctypes.c_size_t(numbers.nbytes)
    assert arrays.cuda.cuMemcpyHtoD_v2(address, data, bytes_) == 0
    resource = Resource(2, Union(linear=Linear(address.value, 1, 4, (numbers.nbytes,))))
    linear_texture = arrays.object(resource, sampler(flags=READ_AS_INTEGER))
    array, out = arrays.surface(np.zeros((height, width, 2), np.float32))
    text = Path(__file__).with_name("texture_kernel.ptx").read_text("utf-8")
    _, module = arrays.device.load(text)
    # It fetches the image at (x + 0.75, y + 0.25), and writes channel 0 times a number, and channel 3 plus a number.
    result, function = arrays.device.function(module, "scaled")
    assert result == 0
    sums = arrays.device.allocate(4 * width * height)
    values = [
        ctypes.c_uint64(value)
        for value in (arrays.texture(image, texture_sampler), linear_texture, out, sums.value, width, height)
    ]
    pointers = (ctypes.c_void_p * 6)(*map(ctypes.addressof, values))
    assert arrays.cuda.cuLaunchKernel(function, 2, 1, 1, 8, 8, 1, 0, None, pointers, None) == 0
    expected = np.zeros((height, width, 2), np.float32)
    for y, x in product(range(height), range(width)):
        place = (np.float32(x + 0.75) / np.float32(width), np.float32(y + 0.25) / np.float32(height))
        color, number = fetched(image, place, texture_sampler), numbers[y * width + x].astype(np.float32)
        expected[y, x] = color[0] * number[0], color[3] + number[3]
    np.testing.assert_array_equal(arrays.read(array, expected), expected)
    result_sums = np.zeros((height, width), np.float32)
    assert (
        arrays.cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(result_sums.ctypes.data), sums, ctypes.c_size_t(result_sums.nbytes))
        == 0
    )
    np.testing.assert_array_equal(result_sums, expected[..., 0] + expected[..., 1])


def test_a_surface_needs_an_array_with_the_surface_flag(arrays):
    arrays.object(Resource(0, Union(array=arrays.array(np.zeros((4, 4, 1), np.float32)))), status=INVALID_VALUE)
    arrays.object(Resource(2), status=INVALID_VALUE)


CODE = """
class Descriptor(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t * 3), ("rest", ctypes.c_uint * 3))
class Resource(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int), ("array", ctypes.c_void_p), ("rest", ctypes.c_int * 34))
array, handle = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuArray3DCreate_v2(ctypes.byref(array), ctypes.byref(Descriptor((8, 4, 0), (32, 1, 2)))) == 0
assert cuda.cuSurfObjectCreate(ctypes.byref(handle), ctypes.byref(Resource(0, array))) == 0
at, out, function = allocate(4096), allocate(4096), load(text)
def place(*numbers):
    held = (ctypes.c_int32 * 4)(*numbers)
    assert cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(at), held, ctypes.c_size_t(16)) == 0
"""


@pytest.mark.parametrize(
    ("place", "result"),
    [((28, 3), 0), ((32, 0), ILLEGAL_ADDRESS), ((-4, 0), ILLEGAL_ADDRESS), ((0, 4), ILLEGAL_ADDRESS),
     ((0, -1), ILLEGAL_ADDRESS), ((2, 0), MISALIGNED)],
)  # fmt: skip
@pytest.mark.parametrize("text", [loads("2d", "trap"), stores("2d", "trap")], ids=["load", "store"])
def test_outside_is_a_fault_where_the_instruction_traps(device, text, place, result):
    numbers, _ = run_program(device, f"{CODE}place(*{place})\nprint(launch(function, handle.value, at, out))", text)
    assert numbers == [result]


def test_a_surface_over_an_array_that_is_freed_is_a_fault(device):
    end = "assert cuda.cuArrayDestroy(array) == 0\nprint(launch(function, handle.value, at, out))"
    assert run_program(device, CODE + end, stores("2d", "zero"))[0] == [ILLEGAL_ADDRESS]


def test_stores_of_two_threads_to_one_place_are_a_race(device):
    code = f"{CODE}print(launch(function, handle.value, at, out, grid=2))"
    _, stderr = run_program(device, code, stores("2d", "trap"), VGPU_CHECK="racecheck")
    assert "race" in stderr
    disjoint_stores = stores("2d", "trap").replace("sust.b", "mul.lo.u32 %s0, %i, 4; sust.b")
    assert "race" not in run_program(device, code, disjoint_stores, VGPU_CHECK="racecheck")[1]


def test_reads_of_unwritten_texels_are_reported(device):
    code = f"{CODE}place(4, 0)\nprint(launch(function, handle.value, at, out))"
    _, stderr = run_program(device, code, loads("2d", "trap"), VGPU_CHECK="initcheck")
    assert "never" in stderr or "nobody" in stderr or "initcheck" in stderr
