"""CUDA arrays: made, copied to and from, asked, freed; by the driver's interface and by the runtime's."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from texturing import CLAMP, CUBEMAP, GATHER, LAYERED, LINEAR, SURFACE, ArrayDescriptor, described, size
from virtual_device import kernel

INVALID_VALUE, INVALID_CHANNELS, INVALID_FILTER, INVALID_HANDLE, NOT_SUPPORTED = 1, 20, 26, 400, 801
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS = 1, 2, 3, 4
WILD = ctypes.c_void_p(0x1234560)


@pytest.mark.parametrize(
    ("shape", "flags"),
    [((9, 1), 0), ((4, 6, 2), 0), ((3, 4, 5, 4), SURFACE), ((3, 5, 1), LAYERED), ((2, 3, 4, 1), LAYERED)],
)
def test_an_array_holds_what_is_copied_to_it(arrays, shape, flags):
    texels = np.random.default_rng(1).integers(0, 2**16, shape, np.uint16)
    array = arrays.array(texels, flags)
    np.testing.assert_array_equal(arrays.read(array, texels), texels)
    wanted, made = described(texels, flags), arrays.descriptor(array)
    assert bytes(made) == bytes(wanted)


def test_a_copy_of_a_part_leaves_the_rest_and_must_lie_inside(arrays):
    texels = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5, 1)
    array, part = arrays.array(texels), np.full((2, 2, 3, 1), -1, np.float32)
    assert arrays.copy(array, part, at=(8, 1, 1)) == 0
    texels[1:, 1:3, 2:] = -1
    np.testing.assert_array_equal(arrays.read(array, texels), texels)
    for at in ((12, 1, 1), (8, 3, 1), (8, 1, 2), (2**64 - 4, 0, 0), (6, 1, 1)):
        assert arrays.copy(array, part, at=at) == INVALID_VALUE
        assert arrays.copy(array, part, at=at, back=True) == INVALID_VALUE
    one = np.full((1, 1, 1, 1), -1, np.float32)
    for at in ((20, 0, 0), (0, 4, 0), (0, 0, 3)):
        assert arrays.copy(array, one, at=at) == INVALID_VALUE
    assert arrays.copy(WILD, part) == INVALID_HANDLE
    np.testing.assert_array_equal(arrays.read(array, texels), texels)


def test_rows_of_bytes_go_to_and_from_an_array(arrays):
    cuda, data = arrays.cuda, np.arange(24, dtype=np.uint8)
    array, at = arrays.array(np.zeros((24, 1), np.uint8)), arrays.device.allocate(24)
    host, made = ctypes.c_void_p(data.ctypes.data), np.zeros(24, np.uint8)
    back = ctypes.c_void_p(made.ctypes.data)
    assert cuda.cuMemcpyHtoA_v2(array, size(4), host, size(20)) == 0
    assert cuda.cuMemcpyAtoD_v2(at, array, size(4), size(20)) == 0
    assert cuda.cuMemcpyDtoA_v2(array, size(0), at, size(20)) == 0
    assert cuda.cuMemcpyAtoA_v2(array, size(20), array, size(0), size(4)) == 0
    assert cuda.cuMemcpyAtoHAsync_v2(back, array, size(0), size(24), None) == 0
    assert made.tolist() == [*range(20), 0, 1, 2, 3]
    assert cuda.cuMemcpyHtoA_v2(array, size(5), host, size(20)) == INVALID_VALUE
    assert cuda.cuMemcpyAtoH_v2(back, array, size(25), size(0)) == INVALID_VALUE
    assert cuda.cuMemcpyHtoAAsync_v2(WILD, size(0), host, size(1), None) == INVALID_HANDLE


def free_bytes(cuda):
    free, total = size(), size()
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def test_an_array_is_freed_once(arrays):
    before = free_bytes(arrays.cuda)
    array = arrays.array(np.zeros((100, 10, 4), np.float32))
    assert before - free_bytes(arrays.cuda) == 16000
    assert [arrays.cuda.cuArrayDestroy(array) for _ in range(2)] == [0, INVALID_HANDLE]
    assert free_bytes(arrays.cuda) == before
    assert arrays.cuda.cuArray3DGetDescriptor_v2(ctypes.byref(ArrayDescriptor()), array) == INVALID_HANDLE
    assert arrays.copy(array, np.zeros((1, 1, 1, 4), np.float32)) == INVALID_HANDLE


def attribute(arrays, which):
    value = ctypes.c_int()
    assert arrays.cuda.cuDeviceGetAttribute(ctypes.byref(value), which, 0) == 0
    return value.value


# The attributes of the largest width, height, and depth or number of layers.
LARGEST = {
    (0, 1): (21,), (0, 2): (22, 23), (0, 3): (24, 25, 26), (SURFACE, 1): (55,), (SURFACE, 2): (56, 57),
    (SURFACE, 3): (58, 59, 60), (GATHER, 2): (45, 46), (LAYERED, 3): (27, 28, 29), (LAYERED | SURFACE, 3): (63, 64, 65),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "dimensions"), LARGEST)
def test_an_array_is_as_large_as_the_attributes_say(arrays, flags, dimensions):
    for axis, which in enumerate(LARGEST[flags, dimensions]):
        most = attribute(arrays, which)
        assert most >= 2048
        extents = [1] * dimensions + [0] * (3 - dimensions)
        for extents[axis], wanted in ((most, 0), (most + 1, INVALID_VALUE)):
            alternate = (flags, dimensions, axis) == (0, 3, 2)  # more slices of narrower rows
            wanted = 0 if alternate and extents[axis] <= attribute(arrays, 49) else wanted
            array = arrays.create(ArrayDescriptor(tuple(extents), 1, 1, flags), wanted)
            assert wanted or arrays.cuda.cuArrayDestroy(array) == 0


@pytest.mark.parametrize(
    ("descriptor", "wanted"),
    [
        (ArrayDescriptor((0, 4, 0), 1, 1, 0), INVALID_VALUE),
        (ArrayDescriptor((4, 0, 4), 1, 1, 0), INVALID_VALUE),
        (ArrayDescriptor((4, 4, 0), 1, 1, LAYERED), INVALID_VALUE),
        (ArrayDescriptor((4, 4, 0), 1, 3, 0), INVALID_VALUE),
        (ArrayDescriptor((4, 4, 0), 4, 1, 0), INVALID_VALUE),
        (ArrayDescriptor((4, 4, 0), 1, 1, 0x1000), INVALID_VALUE),
        (ArrayDescriptor((4, 4, 6), 1, 1, CUBEMAP), NOT_SUPPORTED),
        (ArrayDescriptor((4, 4, 0), 0x91, 4, 0), NOT_SUPPORTED),
        (ArrayDescriptor((4, 4, 0), 1, 1, 0x40), NOT_SUPPORTED),
    ],
)
def test_other_arrays_are_refused(arrays, descriptor, wanted):
    arrays.create(descriptor, wanted)


def test_levels_of_a_mipmapped_array_are_arrays_that_go_with_it(arrays):
    cuda, before, mipmapped, level = arrays.cuda, free_bytes(arrays.cuda), ctypes.c_void_p(), ctypes.c_void_p()
    descriptor = ArrayDescriptor((20, 8, 0), 32, 1, 0)
    assert cuda.cuMipmappedArrayCreate(ctypes.byref(mipmapped), ctypes.byref(descriptor), 9) == 0
    found = []
    while cuda.cuMipmappedArrayGetLevel(ctypes.byref(level), mipmapped, len(found)) == 0:
        found.append(tuple(arrays.descriptor(level).size)[:2])
    assert found == [(20, 8), (10, 4), (5, 2), (2, 1), (1, 1)]
    assert cuda.cuArrayDestroy(level) == INVALID_VALUE
    assert [cuda.cuMipmappedArrayDestroy(mipmapped) for _ in range(2)] == [0, INVALID_HANDLE]
    assert cuda.cuArrayDestroy(level) == INVALID_HANDLE
    assert free_bytes(cuda) == before


# The runtime's.
class Channels(ctypes.Structure):
    """cudaChannelFormatDesc."""

    _fields_ = (("bits", ctypes.c_int * 4), ("kind", ctypes.c_int))


class Extent(ctypes.Structure):
    _fields_ = (("size", size * 3),)


class Pitched(ctypes.Structure):
    """cudaPitchedPtr."""

    _fields_ = (("at", ctypes.c_void_p), ("pitch", size), ("width", size), ("height", size))


class Parameters(ctypes.Structure):
    """cudaMemcpy3DParms."""

    _fields_ = (("source", ctypes.c_void_p), ("source_at", size * 3), ("source_memory", Pitched),
                ("target", ctypes.c_void_p), ("target_at", size * 3), ("target_memory", Pitched),
                ("size", size * 3), ("kind", ctypes.c_int))  # fmt: skip


class PitchedRows(ctypes.Structure):
    _fields_ = (("at", ctypes.c_uint64), ("channels", Channels), ("size", size * 3))


class RuntimeUnion(ctypes.Union):
    _fields_ = (("array", ctypes.c_void_p), ("pitched", PitchedRows))


class RuntimeResource(ctypes.Structure):
    """cudaResourceDesc."""

    _fields_ = (("kind", ctypes.c_int), ("of", RuntimeUnion), ("reserved", ctypes.c_int * 20))


class RuntimeSampler(ctypes.Structure):
    """cudaTextureDesc."""

    _fields_ = (("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("read", ctypes.c_int), ("srgb", ctypes.c_int),
                ("border", ctypes.c_float * 4), ("normalized", ctypes.c_int), ("rest", ctypes.c_int * 7))  # fmt: skip


FLOATS = Channels((32, 0, 0, 0), 2)


def made_by_runtime(cuda, channels, width, height=0, flags=0, wanted=0):
    array = ctypes.c_void_p()
    made = cuda.cudaMallocArray(ctypes.byref(array), ctypes.byref(channels), size(width), size(height), flags)
    assert made == wanted
    return array


def place(values):
    return ctypes.c_void_p(values.ctypes.data)


def test_the_runtimes_arrays_are_copied_to_and_from(device):
    cuda, data, made = device.cuda, np.arange(20, dtype=np.float32).reshape(4, 5), np.zeros((4, 5), np.float32)
    array, other = (made_by_runtime(cuda, FLOATS, 5, 4) for _ in range(2))
    rows = (size(20), size(20), size(4))  # pitch, width and height
    assert cuda.cudaMemcpy2DToArray(array, size(0), size(0), place(data), *rows, HOST_TO_DEVICE) == 0
    assert cuda.cudaMemcpy2DArrayToArray(
        other, size(4), size(1), array, size(0), size(0), size(16), size(3), DEVICE_TO_DEVICE
    ) == 0  # fmt: skip
    assert cuda.cudaMemcpyFromArray(place(made), other, size(0), size(0), size(80), DEVICE_TO_HOST) == 0
    wanted = np.zeros((4, 5), np.float32)
    wanted[1:, 1:] = data[:3, :4]
    np.testing.assert_array_equal(made, wanted)
    # Bytes that go on in the next row.
    assert cuda.cudaMemcpyToArray(other, size(16), size(2), place(data), size(12), BY_ADDRESS) == 0
    assert cuda.cudaMemcpy2DFromArrayAsync(
        place(made), size(20), other, size(0), size(0), size(20), size(4), DEVICE_TO_HOST, None
    ) == 0  # fmt: skip
    wanted[2, 4], wanted[3, :2] = data[0, 0], data[0, 1:3]
    np.testing.assert_array_equal(made, wanted)
    assert cuda.cudaMemcpyToArray(other, size(16), size(3), place(data), size(8), BY_ADDRESS) == INVALID_VALUE
    assert cuda.cudaMemcpyToArray(WILD, size(0), size(0), place(data), size(8), BY_ADDRESS) == INVALID_HANDLE
    assert [cuda.cudaFreeArray(one) for one in (array, other, other, None)] == [0, 0, INVALID_HANDLE, 0]


def test_a_box_of_an_array_counts_its_elements(device):
    cuda, data = device.cuda, np.arange(3 * 4 * 5 * 2, dtype=np.float32).reshape(3, 4, 5, 2)
    array, pairs = ctypes.c_void_p(), Channels((32, 32, 0, 0), 2)
    extent = Extent((5, 4, 3))
    assert cuda.cudaMalloc3DArray(ctypes.byref(array), ctypes.byref(pairs), extent, 0) == 0
    whole = Parameters(source_memory=Pitched(data.ctypes.data, 40, 5, 4), target=array, size=(5, 4, 3), kind=4)
    assert cuda.cudaMemcpy3D(ctypes.byref(whole)) == 0
    made = np.zeros((2, 2, 3, 2), np.float32)
    part = Parameters(source=array, source_at=(2, 1, 1), target_memory=Pitched(made.ctypes.data, 24, 3, 2),
                      size=(3, 2, 2), kind=2)  # fmt: skip
    assert cuda.cudaMemcpy3DAsync(ctypes.byref(part), None) == 0
    np.testing.assert_array_equal(made, data[1:, 1:3, 2:])
    part.source_at = (size * 3)(3, 1, 1)
    assert cuda.cudaMemcpy3D(ctypes.byref(part)) == INVALID_VALUE
    part.target = array
    assert cuda.cudaMemcpy3D(ctypes.byref(part)) == INVALID_VALUE, "an array and memory at once"
    channels, found, flags = Channels(), Extent(), ctypes.c_uint(7)
    asked = (ctypes.byref(one) for one in (channels, found, flags))
    assert cuda.cudaArrayGetInfo(*asked, array) == 0
    assert (list(channels.bits), channels.kind, list(found.size), flags.value) == ([32, 32, 0, 0], 2, [5, 4, 3], 0)


def test_memory_with_a_pitch_is_made_and_filled(device):
    cuda, at = device.cuda, Pitched()
    assert cuda.cudaMalloc3D(ctypes.byref(at), Extent((40, 3, 2))) == 0
    assert (at.pitch % 512, at.width, at.height) == (0, 40, 3)
    assert cuda.cudaMemset3D(at, 0, Extent((at.pitch, 3, 2))) == 0
    assert cuda.cudaMemset3D(at, 7, Extent((40, 2, 2))) == 0
    made = np.zeros((2, 3, at.pitch), np.uint8)
    assert cuda.cudaMemcpy(place(made), ctypes.c_void_p(at.at), size(made.nbytes), DEVICE_TO_HOST) == 0
    wanted = np.zeros_like(made)
    wanted[:, :2, :40] = 7
    np.testing.assert_array_equal(made, wanted)
    assert cuda.cudaFree(ctypes.c_void_p(at.at)) == 0


@pytest.mark.parametrize(
    ("bits", "kind", "wanted"),
    [((8, 8, 8, 8), 1, 0), ((16, 0, 0, 0), 2, 0), ((32, 32, 32, 0), 2, INVALID_CHANNELS),
     ((32, 16, 0, 0), 2, INVALID_CHANNELS), ((8, 0, 0, 0), 2, INVALID_CHANNELS), ((0, 0, 0, 0), 0, INVALID_CHANNELS),
     ((8, 0, 8, 0), 0, INVALID_CHANNELS), ((8, 0, 0, 0), 5, NOT_SUPPORTED), ((8, 8, 8, 8), 99, INVALID_CHANNELS)],
)  # fmt: skip
def test_channels_are_those_that_a_format_has(device, bits, kind, wanted):
    array = made_by_runtime(device.cuda, Channels(bits, kind), 4, 4, 0, wanted)
    if not wanted:
        found = Channels()
        assert device.cuda.cudaGetChannelDesc(ctypes.byref(found), array) == 0
        assert (tuple(found.bits), found.kind) == (bits, kind)


READ = kernel(
    """.reg .b32 %f<4>; .reg .b64 %tex; ld.param.u64 %tex, [p0]; ld.param.u64 %l0, [p1];
tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {0f3F000000, 0f3F800000}]; st.global.b32 [%l0], %f0;""",
    ["p0", "p1"],
)


def test_the_runtimes_objects_are_the_drivers(device):
    cuda, data = device.cuda, np.array([[1, 2], [4, 8]], np.float32)
    array = made_by_runtime(cuda, FLOATS, 2, 2, SURFACE)
    assert cuda.cudaMemcpyToArray(array, size(0), size(0), place(data), size(16), HOST_TO_DEVICE) == 0
    resource, how = RuntimeResource(0, RuntimeUnion(array=array)), RuntimeSampler((CLAMP,) * 3, LINEAR)
    texture, surface = ctypes.c_uint64(), ctypes.c_uint64()
    create = cuda.cudaCreateTextureObject
    assert create(ctypes.byref(texture), ctypes.byref(resource), ctypes.byref(how), None) == 0
    assert cuda.cudaCreateSurfaceObject(ctypes.byref(surface), ctypes.byref(resource)) == 0
    result, (_, made) = device.run(READ, [texture.value, np.zeros(1, np.float32)], block=1)
    assert (result, made[0]) == (0, 2.5)
    found, told = RuntimeResource(), RuntimeSampler()
    assert cuda.cudaGetTextureObjectResourceDesc(ctypes.byref(found), texture) == 0
    assert cuda.cudaGetTextureObjectTextureDesc(ctypes.byref(told), texture) == 0
    assert (found.kind, found.of.array, told.filter, told.read) == (0, array.value, LINEAR, 0)
    assert [cuda.cudaDestroyTextureObject(texture) for _ in range(2)] == [0, INVALID_VALUE]
    assert [cuda.cudaDestroySurfaceObject(surface) for _ in range(2)] == [0, INVALID_VALUE]


def test_integers_as_they_are_have_nothing_between_them(device):
    cuda, handle = device.cuda, ctypes.c_uint64()
    array = made_by_runtime(cuda, Channels((8, 0, 0, 0), 1), 2, 2)
    resource, how = RuntimeResource(0, RuntimeUnion(array=array)), RuntimeSampler((CLAMP,) * 3, LINEAR, 0)
    create = cuda.cudaCreateTextureObject
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(how), None) == INVALID_FILTER
    how.read = 1
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(how), None) == 0
    rows = RuntimeUnion(pitched=PitchedRows(device.allocate(512).value, FLOATS, (4, 2, 32)))
    resource, how = RuntimeResource(3, rows), RuntimeSampler((CLAMP,) * 3, LINEAR)
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(how), None) == 0
    found = RuntimeResource()
    assert cuda.cudaGetTextureObjectResourceDesc(ctypes.byref(found), handle) == 0
    given, told = (one.pitched for one in (rows, found.of))  # padding between the fields is nobody's
    assert (told.at, bytes(told.channels), list(told.size)) == (given.at, bytes(given.channels), list(given.size))


@pytest.mark.parametrize(("version", "multiprocessors", "behind"), [("12", 388, 20), ("13", 384, 12)])
def test_properties_tell_how_large_textures_may_be(device, version, multiprocessors, behind):
    runtime = ctypes.CDLL(str(Path(device.library).with_name(f"libcudart.so.{version}")))
    room = (ctypes.c_int * 300)()
    name = "cudaGetDeviceProperties_v2" if version == "12" else "cudaGetDeviceProperties"
    assert getattr(runtime, name)(room, 0) == 0
    first = (multiprocessors + behind) // 4
    linear = [2**28] if version == "12" else []
    wanted = [131072, 32768, *linear, 131072, 65536, 32768, 32768, 131072, 65000, 2097120]
    assert list(room)[first : first + len(wanted)] == wanted
