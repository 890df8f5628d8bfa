"""A 64-bit digest of a value's bytes. It depends on each byte and its position, and not on the order of summation.

The digests of 0.0 and -0.0 differ, as do those of NaNs with different payloads; length and type count. Digests that
were computed on different devices are never compared, so each may use its own hash function.

Where the package xxhash is installed, 64-bit XXH3 is used, which is faster on large values. A trace names its hash
function, and traces with different ones are not compared. Without xxhash:

Small values are hashed by SHA-1. That is too slow for large values, whose 64-bit words are hashed as follows: each word
is folded (its high bits are XORed into its low bits) and multiplied by the weight of its position; the sums of blocks
of words are hashed by SHA-1. Folding is invertible and each weight is odd, so a change of one word always changes the
sum. No two weights, and no weight and the negative of another, share their low 32 bits, so a change of two bits always
changes the sum, even if both are sign bits. The fold moves the sign bits of a word to different positions. Larger
changes cancel out only by chance: with probability 2 ** -31 if only the highest bits of words change, and with 2 ** -64
if a lowest bit changes.
"""

import hashlib
import importlib.util
import struct
import threading
import zlib

import numpy

from . import user_frames


def _find_xxh3():
    """Return xxhash.xxh3_64_intdigest, or None. A file of the user's program named xxhash.py is not imported."""
    try:
        spec = importlib.util.find_spec("xxhash")
        if spec is None or spec.origin is None or user_frames.is_user(spec.origin):
            return None
        from xxhash import xxh3_64_intdigest
        return xxh3_64_intdigest
    except (ImportError, ValueError):  # an old one has no XXH3; a module without a spec
        return None


xxh3 = _find_xxh3()
NAME = "{}; in graphs farmhash64 on CPU, weighted integer sum on GPU".format(
    "XXH3" if xxh3 is not None else "SHA-1 up to 8 KiB, weighted sums of folded words above")
SMALL = 8192  # bytes; without xxhash, larger values are hashed by weighted sums
# Factors of the weights of bytes in the sum that a graph computes on a GPU, as signed 64-bit integers.
FIRST_FACTOR = 0x9e3779b97f4a7c15 - (1 << 64)
SECOND_FACTOR = 0xbf58476d1ce4e5b9 - (1 << 64)
_BLOCK = 1 << 15  # words: they, their weights and the folded words fit into a core's cache
_FACTOR, _FOLD = numpy.uint64(FIRST_FACTOR & 0xffffffffffffffff), numpy.uint64(33)
_SHAPES_LIMIT = 1 << 14
_shapes = {}
_seeds = {}  # {name of a type: seed}
_local = threading.local()
_weights = []  # the array of the weights of a block, once it was computed


def digest_bytes(data, kind=""):
    """Return the digest of bytes, or of a contiguous buffer. kind: the name of its elements' type, hashed as well."""
    if xxh3 is not None:
        return xxh3(data, _seed(kind))
    size = len(data) if isinstance(data, bytes) else memoryview(data).nbytes
    if size < SMALL:
        hashed_bytes = bytes(data)
    else:
        sums = _sums(numpy.frombuffer(data, numpy.uint64, size // 8))
        hashed_bytes = struct.pack("<Q{}Q".format(len(sums)), size, *sums)
        if size % 8:
            hashed_bytes += numpy.frombuffer(data, numpy.uint8)[size // 8 * 8:].tobytes()
    return int.from_bytes(hashlib.sha1(kind.encode("ascii") + hashed_bytes).digest()[:8], "little")


def _seed(kind):
    seed = _seeds.get(kind)
    if seed is None:
        seed = _seeds[kind] = zlib.crc32(kind.encode("ascii"))
    return seed


def digest_array(array):
    """Return the digest of a NumPy array of any type. Strings are hashed with their lengths."""
    array = numpy.asarray(array)
    if array.dtype.kind in "OUS":
        hasher = hashlib.sha1()
        for item in array.reshape(-1).tolist():
            text = item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
            hasher.update(struct.pack("<Q", len(text)) + text)
        return struct.unpack("<Q", hasher.digest()[:8])[0]
    return digest_bytes(array.tobytes() if array.nbytes < SMALL else
                    numpy.ascontiguousarray(array).reshape(-1).view(numpy.uint8), array.dtype.str)


def _sums(words):
    """Return, for each block of words, the sum of its folded words times their weights."""
    if not _weights:
        _weights.append(_splitmix64_weights(_BLOCK))
    if not hasattr(_local, "room"):
        _local.room = numpy.empty(_BLOCK, numpy.uint64)
    weights, buffer, sums = _weights[0], _local.room, []
    for begin in range(0, len(words), _BLOCK):
        block = words[begin:begin + _BLOCK]
        if len(block) < _BLOCK:
            weights, buffer = weights[:len(block)], buffer[:len(block)]
        numpy.right_shift(block, _FOLD, out=buffer)
        numpy.bitwise_xor(buffer, block, out=buffer)
        sums.append(int(numpy.einsum("i,i->", buffer, weights)))
    return sums


def _splitmix64_weights(count):
    """Return pseudorandom odd 64-bit numbers: splitmix64 of 1, 2, 3 and so on.

    A number whose low half equals that of an earlier one, or of its negative, is left out.
    """
    mixed = numpy.arange(1, 2 * count + 1, dtype=numpy.uint64) * _FACTOR
    for bits, factor in ((30, SECOND_FACTOR & 0xffffffffffffffff), (27, 0x94d049bb133111eb), (31, 1)):
        mixed ^= mixed >> numpy.uint64(bits)
        mixed *= numpy.uint64(factor)
    mixed |= numpy.uint64(1)
    low = mixed.astype(numpy.uint32)
    first_indices = numpy.unique(numpy.minimum(low, ~low + numpy.uint32(1)), return_index=True)[1]
    return mixed[numpy.sort(first_indices)[:count]]


def digest_shape(shape):
    """Return the CRC-32 of a shape (sequence of integers), never 0, which stands for unknown (None)."""
    if shape is None:
        return 0
    shape = tuple(shape)
    digest = _shapes.get(shape)
    if digest is None:
        if len(_shapes) > _SHAPES_LIMIT:
            _shapes.clear()
        text = ",".join(str(size) for size in shape).encode("ascii") + b";"
        digest = _shapes[shape] = zlib.crc32(text) & 0xffffffff or 1
    return digest


def digest_parts(digests):
    """Return one digest, as 16 hex digits, of {name: digest}."""
    text = "".join("{}={:016x};".format(name, digests[name]) for name in sorted(digests))
    return "{:016x}".format(digest_bytes(text.encode("utf-8")))


def weighted_sum(array):
    """Return what the sum in a graph computes, by NumPy, for tests. array: of any numeric type."""
    data = numpy.frombuffer(numpy.ascontiguousarray(array).tobytes(), numpy.uint8).astype(numpy.int64)
    with numpy.errstate(over="ignore"):
        total = ((data + 1) * _weights_numpy(data.size)).sum(dtype=numpy.int64)
        return int(total) & 0xffffffffffffffff


def _weights_numpy(count):
    with numpy.errstate(over="ignore"):
        mixed = (numpy.arange(count, dtype=numpy.int64) + 1) * numpy.int64(FIRST_FACTOR)
        mixed ^= mixed >> 29
        mixed *= numpy.int64(SECOND_FACTOR)
        mixed ^= mixed >> 32
        return mixed | 1
