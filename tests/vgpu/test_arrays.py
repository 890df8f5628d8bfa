"""CUDA arrays: creation, copies, queries and destruction, by the driver's interface and by the runtime's."""

import ctypes
from pathlib import Path

import numpy as np
import pytest
from texturing import CLAMP, CUBEMAP, GATHER, LAYERED, LINEAR, SURFACE, ArrayDescriptor, array_descriptor, size
from virtual_device import kernel

INVALID_VALUE, INVALID_CHANNELS, INVALID_FILTER, INVALID_HANDLE, NOT_SUPPORTED = 1, 20, 26, 400, 801
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE, BY_ADDRESS = 1, 2, 3, 4
BAD_POINTER = ctypes.c_void_p(0x1234560)


@pytest.mark.parametrize(
    ("shape", "flags"),
    [((9, 1), 0), ((4, 6, 2), 0), ((3, 4, 5, 4), SURFACE), ((3, 5, 1), LAYERED), ((2, 3, 4, 1), LAYERED)],
)
def test_an_array_is_copied_to_and_read_back(arrays, shape, flags):
    texels = np.random.default_rng(1).integers(0, 2**16, shape, np.uint16)
    array = arrays.array(texels, flags)
    np.testing.assert_array_equal(arrays.read(array, texels), texels)
    expected, descriptor = array_descriptor(texels, flags), arrays.descriptor(array)
    assert bytes(descriptor) == bytes(expected)


def test_a_copy_of_a_part_leaves_the_rest_and_must_lie_inside(arrays):
    texels = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5, 1)
    array, part = arrays.array(texels), np.full((2, 2, 3, 1), -1, np.float32)
    assert arrays.copy(array, part, at=(8, 1, 1)) == 0
    texels[1:, 1:3, 2:] = -1
    np.testing.assert_array_equal(arrays.read(array, texels), texels)
    for origin in ((12, 1, 1), (8, 3, 1), (8, 1, 2), (2**64 - 4, 0, 0), (6, 1, 1)):
        assert arrays.copy(array, part, at=origin) == INVALID_VALUE
        assert arrays.copy(array, part, at=origin, back=True) == INVALID_VALUE
    texel = np.full((1, 1, 1, 1), -1, np.float32)
    for origin in ((20, 0, 0), (0, 4, 0), (0, 0, 3)):
        assert arrays.copy(array, texel, at=origin) == INVALID_VALUE
    assert arrays.copy(BAD_POINTER, part) == INVALID_HANDLE
    np.testing.assert_array_equal(arrays.read(array, texels), texels)


def test_rows_of_bytes_are_copied_to_and_from_an_array(arrays):
    cuda, data = arrays.cuda, np.arange(24, dtype=np.uint8)
    array, address = arrays.array(np.zeros((24, 1), np.uint8)), arrays.device.allocate(24)
    host, result = ctypes.c_void_p(data.ctypes.data), np.zeros(24, np.uint8)
    result_pointer = ctypes.c_void_p(result.ctypes.data)
    assert cuda.cuMemcpyHtoA_v2(array, size(4), host, size(20)) == 0
    assert cuda.cuMemcpyAtoD_v2(address, array, size(4), size(20)) == 0
    assert cuda.cuMemcpyDtoA_v2(array, size(0), address, size(20)) == 0
    assert cuda.cuMemcpyAtoA_v2(array, size(20), array, size(0), size(4)) == 0
    assert cuda.cuMemcpyAtoHAsync_v2(result_pointer, array, size(0), size(24), None) == 0
    assert result.tolist() == [*range(20), 0, 1, 2, 3]
    assert cuda.cuMemcpyHtoA_v2(array, size(5), host, size(20)) == INVALID_VALUE
    assert cuda.cuMemcpyAtoH_v2(result_pointer, array, size(25), size(0)) == INVALID_VALUE
    assert cuda.cuMemcpyHtoAAsync_v2(BAD_POINTER, size(0), host, size(1), None) == INVALID_HANDLE


def free_bytes(cuda):
    """Return the free memory of the device."""
    free, total = size(), size()
    assert cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
    return free.value


def test_freeing_an_array_twice_is_an_error(arrays):
    free_before = free_bytes(arrays.cuda)
    array = arrays.array(np.zeros((100, 10, 4), np.float32))
    assert free_before - free_bytes(arrays.cuda) == 16000
    assert [arrays.cuda.cuArrayDestroy(array) for _ in range(2)] == [0, INVALID_HANDLE]
    assert free_bytes(arrays.cuda) == free_before
    assert arrays.cuda.cuArray3DGetDescriptor_v2(ctypes.byref(ArrayDescriptor()), array) == INVALID_HANDLE
    assert arrays.copy(array, np.zeros((1, 1, 1, 4), np.float32)) == INVALID_HANDLE


def attribute(arrays, number):
    """Return an attribute of the device."""
    value = ctypes.c_int()
    assert arrays.cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0) == 0
    return value.value


# (flags, dimensions): the CUdevice_attributes of the largest width, height, and depth or number of layers.
LARGEST = {
    (0, 1): (21,), (0, 2): (22, 23), (0, 3): (24, 25, 26), (SURFACE, 1): (55,), (SURFACE, 2): (56, 57),
    (SURFACE, 3): (58, 59, 60), (GATHER, 2): (45, 46), (LAYERED, 3): (27, 28, 29), (LAYERED | SURFACE, 3): (63, 64, 65),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "dimensions"), LARGEST)
def test_the_largest_arrays_are_those_of_the_attributes(arrays, flags, dimensions):
    for axis, number in enumerate(LARGEST[flags, dimensions]):
        largest = attribute(arrays, number)
        assert largest >= 2048
        extents = [1] * dimensions + [0] * (3 - dimensions)
        for extents[axis], status in ((largest, 0), (largest + 1, INVALID_VALUE)):
            is_alternate = (flags, dimensions, axis) == (0, 3, 2)  # attribute 49 permits more slices of narrower rows
            status = 0 if is_alternate and extents[axis] <= attribute(arrays, 49) else status
            array = arrays.create(ArrayDescriptor(tuple(extents), 1, 1, flags), status)
            assert status or arrays.cuda.cuArrayDestroy(array) == 0


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
def test_invalid_array_descriptors_are_refused(arrays, descriptor, wanted):
    arrays.create(descriptor, wanted)


def test_levels_of_a_mipmapped_array_are_destroyed_with_it(arrays):
    cuda, free_before, mipmapped, level = arrays.cuda, free_bytes(arrays.cuda), ctypes.c_void_p(), ctypes.c_void_p()
    descriptor = ArrayDescriptor((20, 8, 0), 32, 1, 0)
    assert cuda.cuMipmappedArrayCreate(ctypes.byref(mipmapped), ctypes.byref(descriptor), 9) == 0
    sizes = []
    while cuda.cuMipmappedArrayGetLevel(ctypes.byref(level), mipmapped, len(sizes)) == 0:
        sizes.append(tuple(arrays.descriptor(level).size)[:2])
    assert sizes == [(20, 8), (10, 4), (5, 2), (2, 1), (1, 1)]
    assert cuda.cuArrayDestroy(level) == INVALID_VALUE
    assert [cuda.cuMipmappedArrayDestroy(mipmapped) for _ in range(2)] == [0, INVALID_HANDLE]
    assert cuda.cuArrayDestroy(level) == INVALID_HANDLE
    assert free_bytes(cuda) == free_before


# Structures of the runtime.
class Channels(ctypes.Structure):
    """The structure cudaChannelFormatDesc."""

    _fields_ = (("bits", ctypes.c_int * 4), ("kind", ctypes.c_int))


class Extent(ctypes.Structure):
    _fields_ = (("size", size * 3),)


class Pitched(ctypes.Structure):
    """The structure cudaPitchedPtr."""

    _fields_ = (("at", ctypes.c_void_p), ("pitch", size), ("width", size), ("height", size))


class Parameters(ctypes.Structure):
    """The structure cudaMemcpy3DParms."""

    _fields_ = (("source", ctypes.c_void_p), ("source_at", size * 3), ("source_memory", Pitched),
                ("target", ctypes.c_void_p), ("target_at", size * 3), ("target_memory", Pitched),
                ("size", size * 3), ("kind", ctypes.c_int))  # fmt: skip


class PitchedRows(ctypes.Structure):
    """The member pitch2D of the union in cudaResourceDesc."""

    _fields_ = (("at", ctypes.c_uint64), ("channels", Channels), ("size", size * 3))


class RuntimeUnion(ctypes.Union):
    _fields_ = (("array", ctypes.c_void_p), ("pitched", PitchedRows))


class RuntimeResource(ctypes.Structure):
    """The structure cudaResourceDesc."""

    _fields_ = (("kind", ctypes.c_int), ("of", RuntimeUnion), ("reserved", ctypes.c_int * 20))


class RuntimeSampler(ctypes.Structure):
    """The structure cudaTextureDesc."""

    _fields_ = (("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("read", ctypes.c_int), ("srgb", ctypes.c_int),
                ("border", ctypes.c_float * 4), ("normalized", ctypes.c_int), ("rest", ctypes.c_int * 7))  # fmt: skip


FLOATS = Channels((32, 0, 0, 0), 2)


def create_by_runtime(cuda, channels, width, height=0, flags=0, status=0):
    """Call cudaMallocArray, which must return this status; return the array."""
    array = ctypes.c_void_p()
    result = cuda.cudaMallocArray(ctypes.byref(array), ctypes.byref(channels), size(width), size(height), flags)
    assert result == status
    return array


def host_pointer(values):
    """Return a pointer to the values."""
    return ctypes.c_void_p(values.ctypes.data)


def test_the_runtimes_arrays_are_copied_to_and_from(device):
    cuda, data, result = device.cuda, np.arange(20, dtype=np.float32).reshape(4, 5), np.zeros((4, 5), np.float32)
    array, second_array = (create_by_runtime(cuda, FLOATS, 5, 4) for _ in range(2))
    rows = (size(20), size(20), size(4))  # pitch, width and height
    assert cuda.cudaMemcpy2DToArray(array, size(0), size(0), host_pointer(data), *rows, HOST_TO_DEVICE) == 0
    assert cuda.cudaMemcpy2DArrayToArray(
        second_array, size(4), size(1), array, size(0), size(0), size(16), size(3), DEVICE_TO_DEVICE
    ) == 0  # fmt: skip
    assert cuda.cudaMemcpyFromArray(host_pointer(result), second_array, size(0), size(0), size(80), DEVICE_TO_HOST) == 0
    expected = np.zeros((4, 5), np.float32)
    expected[1:, 1:] = data[:3, :4]
    np.testing.assert_array_equal(result, expected)
    # These bytes continue in the next row.
    assert cuda.cudaMemcpyToArray(second_array, size(16), size(2), host_pointer(data), size(12), BY_ADDRESS) == 0
    assert cuda.cudaMemcpy2DFromArrayAsync(
        host_pointer(result), size(20), second_array, size(0), size(0), size(20), size(4), DEVICE_TO_HOST, None
    ) == 0  # fmt: skip
    expected[2, 4], expected[3, :2] = data[0, 0], data[0, 1:3]
    np.testing.assert_array_equal(result, expected)
    assert (
        cuda.cudaMemcpyToArray(second_array, size(16), size(3), host_pointer(data), size(8), BY_ADDRESS)
        == INVALID_VALUE
    )
    assert (
        cuda.cudaMemcpyToArray(BAD_POINTER, size(0), size(0), host_pointer(data), size(8), BY_ADDRESS) == INVALID_HANDLE
    )
    assert [cuda.cudaFreeArray(handle) for handle in (array, second_array, second_array, None)] == [
        0,
        0,
        INVALID_HANDLE,
        0,
    ]


def test_a_3d_copy_of_an_array_counts_elements(device):
    cuda, data = device.cuda, np.arange(3 * 4 * 5 * 2, dtype=np.float32).reshape(3, 4, 5, 2)
    array, pairs = ctypes.c_void_p(), Channels((32, 32, 0, 0), 2)
    extent = Extent((5, 4, 3))
    assert cuda.cudaMalloc3DArray(ctypes.byref(array), ctypes.byref(pairs), extent, 0) == 0
    full_copy = Parameters(source_memory=Pitched(data.ctypes.data, 40, 5, 4), target=array, size=(5, 4, 3), kind=4)
    assert cuda.cudaMemcpy3D(ctypes.byref(full_copy)) == 0
    result = np.zeros((2, 2, 3, 2), np.float32)
    part = Parameters(source=array, source_at=(2, 1, 1), target_memory=Pitched(result.ctypes.data, 24, 3, 2),
                      size=(3, 2, 2), kind=2)  # fmt: skip
    assert cuda.cudaMemcpy3DAsync(ctypes.byref(part), None) == 0
    np.testing.assert_array_equal(result, data[1:, 1:3, 2:])
    part.source_at = (size * 3)(3, 1, 1)
    assert cuda.cudaMemcpy3D(ctypes.byref(part)) == INVALID_VALUE
    part.target = array
    assert cuda.cudaMemcpy3D(ctypes.byref(part)) == INVALID_VALUE, "an array and memory at once"
    channels, array_extent, flags = Channels(), Extent(), ctypes.c_uint(7)
    outputs = (ctypes.byref(output) for output in (channels, array_extent, flags))
    assert cuda.cudaArrayGetInfo(*outputs, array) == 0
    assert (list(channels.bits), channels.kind, list(array_extent.size), flags.value) == (
        [32, 32, 0, 0],
        2,
        [5, 4, 3],
        0,
    )


def test_pitched_memory_is_allocated_and_filled(device):
    cuda, memory = device.cuda, Pitched()
    assert cuda.cudaMalloc3D(ctypes.byref(memory), Extent((40, 3, 2))) == 0
    assert (memory.pitch % 512, memory.width, memory.height) == (0, 40, 3)
    assert cuda.cudaMemset3D(memory, 0, Extent((memory.pitch, 3, 2))) == 0
    assert cuda.cudaMemset3D(memory, 7, Extent((40, 2, 2))) == 0
    result = np.zeros((2, 3, memory.pitch), np.uint8)
    assert cuda.cudaMemcpy(host_pointer(result), ctypes.c_void_p(memory.at), size(result.nbytes), DEVICE_TO_HOST) == 0
    expected = np.zeros_like(result)
    expected[:, :2, :40] = 7
    np.testing.assert_array_equal(result, expected)
    assert cuda.cudaFree(ctypes.c_void_p(memory.at)) == 0


@pytest.mark.parametrize(
    ("bits", "kind", "wanted"),
    [((8, 8, 8, 8), 1, 0), ((16, 0, 0, 0), 2, 0), ((32, 32, 32, 0), 2, INVALID_CHANNELS),
     ((32, 16, 0, 0), 2, INVALID_CHANNELS), ((8, 0, 0, 0), 2, INVALID_CHANNELS), ((0, 0, 0, 0), 0, INVALID_CHANNELS),
     ((8, 0, 8, 0), 0, INVALID_CHANNELS), ((8, 0, 0, 0), 5, NOT_SUPPORTED), ((8, 8, 8, 8), 99, INVALID_CHANNELS)],
)  # fmt: skip
def test_channel_formats_are_checked(device, bits, kind, wanted):
    array = create_by_runtime(device.cuda, Channels(bits, kind), 4, 4, 0, wanted)
    if not wanted:
        channels = Channels()
        assert device.cuda.cudaGetChannelDesc(ctypes.byref(channels), array) == 0
        assert (tuple(channels.bits), channels.kind) == (bits, kind)


READ = kernel(
    """.reg .b32 %f<4>; .reg .b64 %tex; ld.param.u64 %tex, [p0]; ld.param.u64 %l0, [p1];
tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%tex, {0f3F000000, 0f3F800000}]; st.global.b32 [%l0], %f0;""",
    ["p0", "p1"],
)


def test_texture_objects_of_the_runtime_are_those_of_the_driver(device):
    cuda, data = device.cuda, np.array([[1, 2], [4, 8]], np.float32)
    array = create_by_runtime(cuda, FLOATS, 2, 2, SURFACE)
    assert cuda.cudaMemcpyToArray(array, size(0), size(0), host_pointer(data), size(16), HOST_TO_DEVICE) == 0
    resource, texture_sampler = RuntimeResource(0, RuntimeUnion(array=array)), RuntimeSampler((CLAMP,) * 3, LINEAR)
    texture, surface = ctypes.c_uint64(), ctypes.c_uint64()
    create = cuda.cudaCreateTextureObject
    assert create(ctypes.byref(texture), ctypes.byref(resource), ctypes.byref(texture_sampler), None) == 0
    assert cuda.cudaCreateSurfaceObject(ctypes.byref(surface), ctypes.byref(resource)) == 0
    result, (_, fetched) = device.run(READ, [texture.value, np.zeros(1, np.float32)], block=1)
    assert (result, fetched[0]) == (0, 2.5)
    queried_resource, queried_sampler = RuntimeResource(), RuntimeSampler()
    assert cuda.cudaGetTextureObjectResourceDesc(ctypes.byref(queried_resource), texture) == 0
    assert cuda.cudaGetTextureObjectTextureDesc(ctypes.byref(queried_sampler), texture) == 0
    assert (queried_resource.kind, queried_resource.of.array, queried_sampler.filter, queried_sampler.read) == (
        0,
        array.value,
        LINEAR,
        0,
    )
    assert [cuda.cudaDestroyTextureObject(texture) for _ in range(2)] == [0, INVALID_VALUE]
    assert [cuda.cudaDestroySurfaceObject(surface) for _ in range(2)] == [0, INVALID_VALUE]


def test_integer_textures_refuse_linear_filtering(device):
    cuda, handle = device.cuda, ctypes.c_uint64()
    array = create_by_runtime(cuda, Channels((8, 0, 0, 0), 1), 2, 2)
    resource, texture_sampler = RuntimeResource(0, RuntimeUnion(array=array)), RuntimeSampler((CLAMP,) * 3, LINEAR, 0)
    create = cuda.cudaCreateTextureObject
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(texture_sampler), None) == INVALID_FILTER
    texture_sampler.read = 1
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(texture_sampler), None) == 0
    rows = RuntimeUnion(pitched=PitchedRows(device.allocate(512).value, FLOATS, (4, 2, 32)))
    resource, texture_sampler = RuntimeResource(3, rows), RuntimeSampler((CLAMP,) * 3, LINEAR)
    assert create(ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(texture_sampler), None) == 0
    queried = RuntimeResource()
    assert cuda.cudaGetTextureObjectResourceDesc(ctypes.byref(queried), handle) == 0
    expected_rows, queried_rows = (
        resource_union.pitched for resource_union in (rows, queried.of)
    )  # padding between the fields is not compared
    assert (queried_rows.at, bytes(queried_rows.channels), list(queried_rows.size)) == (
        expected_rows.at,
        bytes(expected_rows.channels),
        list(expected_rows.size),
    )


# Byte offsets in cudaDeviceProp: of multiProcessorCount, and from there to maxTexture1D, the first of the sizes.
@pytest.mark.parametrize(("version", "multiprocessors", "behind"), [("12", 388, 20), ("13", 384, 12)])
def test_device_properties_have_the_sizes_of_textures(device, version, multiprocessors, behind):
    runtime = ctypes.CDLL(str(Path(device.library).with_name(f"libcudart.so.{version}")))
    properties = (ctypes.c_int * 300)()
    name = "cudaGetDeviceProperties_v2" if version == "12" else "cudaGetDeviceProperties"
    assert getattr(runtime, name)(properties, 0) == 0
    first = (multiprocessors + behind) // 4
    linear = [2**28] if version == "12" else []
    expected = [131072, 32768, *linear, 131072, 65536, 32768, 32768, 131072, 65000, 2097120]
    assert list(properties)[first : first + len(expected)] == expected
