"""CUDA arrays, texture objects and surface objects by ctypes, and a reference for texture fetches.

The reference follows "Texture Fetching" of the CUDA C++ Programming Guide: positions are exact, weights
are rounded to 8 bits, and the sum is computed in double precision and rounded once.
"""

import ctypes
import math
from itertools import product

import numpy as np

WRAP, CLAMP, MIRROR, BORDER = range(4)
POINT, LINEAR = range(2)
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
READ_AS_INTEGER, NORMALIZED, SRGB = 1, 2, 0x10
FORMATS = {"u1": 1, "u2": 2, "u4": 3, "i1": 8, "i2": 9, "i4": 10, "f2": 16, "f4": 32}
size = ctypes.c_size_t


class ArrayDescriptor(ctypes.Structure):
    """The structure CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (("size", size * 3), ("format", ctypes.c_int), ("channels", ctypes.c_uint), ("flags", ctypes.c_uint))


class CopySide(ctypes.Structure):
    """The source or the destination of CUDA_MEMCPY3D."""

    _fields_ = (("at", size * 3), ("level", size), ("kind", ctypes.c_uint), ("host", ctypes.c_void_p),
                ("device", ctypes.c_uint64), ("array", ctypes.c_void_p), ("reserved", ctypes.c_void_p),
                ("pitch", size), ("rows", size))  # fmt: skip


class CopyBox(ctypes.Structure):
    """The structure CUDA_MEMCPY3D."""

    _fields_ = (("source", CopySide), ("target", CopySide), ("size", size * 3))


class Linear(ctypes.Structure):
    _fields_ = (("at", ctypes.c_uint64), ("format", ctypes.c_int), ("channels", ctypes.c_uint), ("size", size * 3))


class Union(ctypes.Union):
    _fields_ = (("array", ctypes.c_void_p), ("linear", Linear), ("reserved", ctypes.c_int * 32))


class Resource(ctypes.Structure):
    """The structure CUDA_RESOURCE_DESC."""

    _fields_ = (("kind", ctypes.c_int), ("of", Union), ("flags", ctypes.c_uint))


class Sampler(ctypes.Structure):
    """The structure CUDA_TEXTURE_DESC."""

    _fields_ = (("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("flags", ctypes.c_uint),
                ("anisotropy", ctypes.c_uint), ("mipmap", ctypes.c_int), ("levels", ctypes.c_float * 3),
                ("border", ctypes.c_float * 4), ("reserved", ctypes.c_int * 12))  # fmt: skip


def sampler(address=CLAMP, filter=POINT, flags=0, border=(0, 0, 0, 0)):
    """Return the structure of a texture's sampling; address: one mode, or one for each dimension."""
    modes = address if isinstance(address, tuple) else (address,) * 3
    return Sampler(modes, filter, flags, border=border)


def array_descriptor(texels, flags=0):
    """Return the descriptor of an array of texels.

    Their shape is (depth or layers, height, width, channels), without the dimensions that the array does not have.
    """
    *extents, channels = texels.shape
    if flags & LAYERED and len(extents) == 2:
        extents = [extents[0], 0, extents[1]]
    width, height, depth = [*extents[::-1], 0, 0][:3]
    return ArrayDescriptor((width, height, depth), FORMATS[texels.dtype.str[1:]], channels, flags)


class Arrays:
    """The functions of the driver's interface that tests of textures and surfaces call."""

    def __init__(self, device):
        self.device, self.cuda = device, device.cuda

    def create(self, descriptor, status=0):
        """Create an array, which must return this status."""
        array = ctypes.c_void_p()
        assert self.cuda.cuArray3DCreate_v2(ctypes.byref(array), ctypes.byref(descriptor)) == status
        return array

    def array(self, texels, flags=0):
        """Create an array of these texels."""
        array = self.create(array_descriptor(texels, flags))
        assert self.copy(array, texels) == 0
        return array

    def copy(self, array, texels, back=False, at=(0, 0, 0)):
        """Copy `texels` to the array at an offset in (bytes, rows, slices), or from it if `back`; return the status."""
        shape = (1,) * (4 - texels.ndim) + texels.shape
        if texels.ndim == 3 and self.descriptor(array).size[1] == 0:
            shape = (texels.shape[0], 1, *texels.shape[1:])  # layers of one row
        row = shape[2] * shape[3] * texels.itemsize
        host = CopySide((0, 0, 0), 0, 1, texels.ctypes.data, 0, None, None, row, shape[1])
        sides = [host, CopySide(at, 0, 3, None, 0, array, None, 0, 0)]
        return self.cuda.cuMemcpy3D_v2(ctypes.byref(CopyBox(*sides[:: -1 if back else 1], (row, shape[1], shape[0]))))

    def read(self, array, like):
        """Return the texels of an array, in the shape of `like`."""
        texels = np.zeros_like(like)
        assert self.copy(array, texels, back=True) == 0
        return texels

    def descriptor(self, array):
        """Return the descriptor of an array."""
        descriptor = ArrayDescriptor()
        assert self.cuda.cuArray3DGetDescriptor_v2(ctypes.byref(descriptor), array) == 0
        return descriptor

    def object(self, resource, texture_sampler=None, status=0):
        """Create a texture object, or a surface object if there is no sampler; return its handle."""
        handle = ctypes.c_uint64()
        if texture_sampler is None:
            result = self.cuda.cuSurfObjectCreate(ctypes.byref(handle), ctypes.byref(resource))
        else:
            result = self.cuda.cuTexObjectCreate(
                ctypes.byref(handle), ctypes.byref(resource), ctypes.byref(texture_sampler), None
            )
        assert result == status
        return handle.value

    def texture(self, texels, texture_sampler, flags=0):
        """Create a texture object over an array of these texels."""
        return self.object(Resource(0, Union(array=self.array(texels, flags))), texture_sampler)

    def surface(self, texels, flags=0):
        """Create an array of these texels and a surface object over it; return both."""
        array = self.array(texels, flags | SURFACE)
        return array, self.object(Resource(0, Union(array=array)))


def index(k, n, mode):
    """Return the index of the texel for any index k, or None for the border."""
    if mode == WRAP:
        return k % n
    if mode == MIRROR:
        k %= 2 * n
        return k if k < n else 2 * n - 1 - k
    if mode == CLAMP:
        return min(max(k, 0), n - 1)
    return k if 0 <= k < n else None


def position(x, n, mode, normalized):
    """Return the coordinate in units of texels, and the address mode that applies."""
    x = float(np.float32(x))
    if not normalized:
        return x, mode if mode in (CLAMP, BORDER) else CLAMP
    if mode == WRAP:
        x -= math.floor(x)
    if mode == MIRROR:  # frac(x), or 1 - frac(x) where floor(x) is odd: unfolded
        x -= 2 * math.floor(x / 2)
    return x * n, mode


def promoted(texels, read_as_integer):
    """Return the texels as floats if the read mode asks for it."""
    if texels.dtype.kind == "f" or read_as_integer or texels.itemsize == 4:
        return texels.astype(np.float32) if texels.dtype.kind == "f" else texels
    return np.maximum(texels / np.iinfo(texels.dtype).max, -1).astype(np.float32)


def fetched(texels, coordinates, texture_sampler):
    """Return the channels of a fetch at (x, y, z) from texels in the shape (z, y, x, channels)."""
    normalized = bool(texture_sampler.flags & NORMALIZED)
    texels = promoted(texels, texture_sampler.flags & READ_AS_INTEGER)
    neighbors = []
    for axis, x in enumerate(coordinates):
        n = texels.shape[len(coordinates) - 1 - axis]
        scaled, mode = position(x, n, texture_sampler.address[axis], normalized)
        if texture_sampler.filter == POINT:
            neighbors.append([(index(math.floor(scaled), n, mode), 1.0)])
            continue
        lower = math.floor(scaled - 0.5)
        fraction = math.floor((scaled - 0.5 - lower) * 256 + 0.5) / 256
        neighbors.append([(index(lower, n, mode), 1 - fraction), (index(lower + 1, n, mode), fraction)])
    total = np.zeros(texels.shape[-1])
    for corner in product(*neighbors[::-1]):
        texel = tuple(k for k, _ in corner)
        weight = math.prod(fraction for _, fraction in corner[::-1])
        color = (
            np.array(texture_sampler.border[: texels.shape[-1]]) if None in texel else texels[texel].astype(np.float64)
        )
        total = total + weight * color
    return total.astype(np.float32 if texels.dtype.kind == "f" else texels.dtype)
