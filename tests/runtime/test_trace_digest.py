"""The digest of values changes with every tested change of bytes, and is equal in every Python and NumPy."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy
import pytest
from forks import environ
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tfdeterminism.trace.capture import digest

BLOCK = digest._BLOCK * 8  # bytes of one block of the weighted sums, which replace XXH3 from SMALL bytes on
SIZES = (digest.SMALL - 8, digest.SMALL, digest.SMALL + 5, 3 * digest.SMALL, BLOCK - 8, BLOCK, BLOCK + 8, 2 * BLOCK + 3)
PROPERTY = settings(max_examples=150, deadline=None)
seeds, positions = st.integers(0, 1 << 30), st.integers(0, 1 << 30)


@pytest.fixture(autouse=True, scope="module", params=["XXH3", "weighted sums"])
def hash_function(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use XXH3 of the package xxhash, or the weighted sums that replace it where it is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "XXH3":
            assert digest.xxh3 is not None, "the tests have it"
        else:
            patch.setattr(digest, "xxh3", None)
        yield


def test_a_file_xxhash_py_of_the_program_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "xxhash.py").write_text("raise SystemExit('run')\n")
    words = "from tfdeterminism.trace.capture import digest; print(digest.xxh3, digest.digest_bytes(b'1'))"
    done = subprocess.run([sys.executable, "-c", words], cwd=tmp_path, env=environ(), capture_output=True, text=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "xxh3", None)
        assert (done.returncode, done.stdout.split()) == (0, ["None", str(digest.digest_bytes(b"1"))]), done.stderr


def random_bytes(seed: int, size: int) -> bytearray:
    """Return bytes of three kinds: random, zeros, or one repeated pattern."""
    kind = seed % 3
    return bytearray(numpy.random.RandomState(seed).bytes(size) if kind == 0 else size * (b"\0", b"\7")[kind - 1])


def digest_of(data: bytes | bytearray) -> int:
    return digest.digest_bytes(bytes(data))


@PROPERTY
@given(seeds, st.sampled_from(SIZES), positions, st.integers(1, 255))
def test_changing_a_byte_changes_the_digest(seed: int, size: int, position: int, change: int) -> None:
    data = random_bytes(seed, size)
    before = digest_of(data)
    data[position % size] ^= change
    assert digest_of(data) != before


@PROPERTY
@given(seeds, st.sampled_from(SIZES), positions, positions, st.sampled_from((1, 2, 4, 8, 4096)))
def test_exchanging_two_elements_changes_the_digest(seed: int, size: int, one: int, other: int, width: int) -> None:
    data = random_bytes(seed, size)
    first, second = (element % (size // width) * width for element in (one, other))
    data[first] ^= 1
    left, right = data[first : first + width], data[second : second + width]
    before = digest_of(data)
    data[first : first + width], data[second : second + width] = right, left
    assert (digest_of(data) != before) == (left != right)


@PROPERTY
@given(seeds, st.sampled_from(SIZES), st.integers(1, 64), st.integers(1, 3000))
def test_length_and_position_change_the_digest(seed: int, size: int, count: int, offset: int) -> None:
    data = random_bytes(seed, size)
    assert digest_of(data + count * b"\0") != digest_of(data)
    data[size // 2] ^= 1
    assert digest_of(data[offset:] + data[:offset]) != digest_of(data)


@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2"])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_no_two_signs_cancel_out(kind: str, value: float) -> None:
    array = numpy.full(digest.SMALL, value, kind)
    pairs = list(itertools.combinations([0, 1, 2, 3, 64, 65, 4096, 8190, 8191], 2))
    assert (
        len({digest.digest_array(array), *(digest_with_flipped_signs(array, *pair) for pair in pairs)})
        == len(pairs) + 1
    )


def digest_with_flipped_signs(array: NDArray[numpy.floating], *indices: int) -> int:
    changed = array.copy()
    changed[list(indices)] *= -1.0
    return digest.digest_array(changed)


def test_many_sums_of_sparse_changes_are_all_different() -> None:
    """A linear sum with few bits would collide hundreds of times: two changed bits in a block of equal words."""
    digests, rng = set(), numpy.random.RandomState(1)
    for _ in range(20_000):
        words = numpy.zeros(1024, numpy.uint64)
        words[rng.choice(1024, 2, replace=False)] = numpy.uint64(1) << rng.choice([63, 62, 31, 32], 2).astype("u8")
        digests.add((digest._sums(words)[0], words.tobytes()))
    assert len({total for total, _ in digests}) == len(digests)


def test_no_two_bits_can_cancel_out() -> None:
    """Proved for all positions: the coefficients are odd, and all low halves of them and their negatives differ."""
    numbers = digest._splitmix64_weights(digest._BLOCK)
    low = numbers.astype(numpy.uint32)
    assert (len(numbers), set((numbers & numpy.uint64(1)).tolist())) == (digest._BLOCK, {1})
    assert len(numpy.unique(numpy.concatenate([low, ~low + numpy.uint32(1)]))) == 2 * len(low)


@PROPERTY
@given(seeds, st.integers(0, 7), st.sampled_from(SIZES))
def test_the_memory_layout_does_not_change_the_digest(seed: int, offset: int, size: int) -> None:
    data = bytes(random_bytes(seed, size))
    room = numpy.frombuffer(bytes(offset) + data, numpy.uint8)
    assert digest.digest_bytes(room[offset:]) == digest_of(data)


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("kind", ["<f8", "<f4", "<f2", "i1"])
def test_signs_of_whole_rows_do_not_cancel_out(kind: str, value: int) -> None:
    """Only highest bits change, very many of them, equally many in each row and column."""
    rows = numpy.full((128, 256), value, kind)
    digests = {digest.digest_array(rows)}
    for count in range(2, 128, 2):
        for axis in (0, 1):
            changed = rows.copy()
            chosen = changed.swapaxes(0, axis).view(f"u{rows.itemsize}")[:count]
            chosen ^= chosen.dtype.type(1 << (8 * rows.itemsize - 1))
            digests.add(digest.digest_array(changed))
    assert len(digests) == 1 + 2 * 63


def test_types_shapes_and_nan_payloads_change_the_digest() -> None:
    zeros = [numpy.zeros(digest.SMALL, kind) for kind in ("<f4", "<i4", "<u4")]
    rows = numpy.arange(1 << 16, dtype=numpy.float32).reshape(256, 256)
    nans = numpy.full(1 << 14, numpy.nan, numpy.float64)
    other = nans.copy()
    other.view(numpy.uint64)[77] ^= numpy.uint64(1)
    arrays = [*zeros, -zeros[0], rows, rows[::-1], rows.T, numpy.roll(rows, 1, 1), nans, other]
    assert len({digest.digest_array(array) for array in arrays}) == len(arrays)


@pytest.mark.tensorflow
def test_the_digest_is_equal_in_an_old_python_and_numpy(tf_python: Callable[[str], Path]) -> None:
    words = (
        "import numpy; from tfdeterminism.trace.capture import digest; digest.xxh3 = None;"
        " data = numpy.arange(100003, dtype='<i4') * 7777;"
        " print([digest.digest_array(data[:count]) for count in (3, 3000, 40000, 100003)])"
    )
    values = [
        subprocess.run([python, "-W", "error", "-c", words], env=environ(), capture_output=True, text=True, check=True)
        for python in (tf_python("tf1.14"), sys.executable)
    ]
    assert values[0].stdout == values[1].stdout
