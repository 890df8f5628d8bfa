"""Parameters reach the kernel: more than 4 KiB of them, which a cubin describes by another attribute, at any offset."""

import numpy as np
import pytest
from containers import (  # run_image: (CUDA's result, arrays) of each launch, and standard error
    KERNELS,
    Launch,
    run_image,
)

IMAGE = KERNELS / "wide_parameters.fatbin"
TABLE = np.arange(7000, dtype=np.int32) * 3
DESCRIBED = bytes([4, 0x45, 12, 0])  # an entry of .nv.info: format, attribute, size


def launch():
    """Return a launch with 28,000 bytes of parameters."""
    return Launch("look_up", 1, 64, [np.zeros(64, np.int32), TABLE.tobytes(), 6900])


@pytest.mark.parametrize("code", ["sass", "ptx"])
def test_wide_parameters_reach_the_kernel(code):
    ((result, (out,)),), stderr = run_image(IMAGE.read_bytes(), [launch()], code)
    assert result == 0, stderr
    assert out.tolist() == TABLE[6900:6964].tolist()


def test_parameters_that_an_unknown_attribute_describes_are_refused(cubin):
    """They would be read as zeros, so PyTorch's ops on lists of tensors would do nothing."""
    assert cubin.count(DESCRIBED) == 3
    ((result, _),), stderr = run_image(cubin.replace(DESCRIBED, bytes([4, 0x7F, 12, 0])), [launch()])
    assert result
    assert "does not describe all of its parameters" in stderr


@pytest.mark.parametrize("code", ["sass", "ptx"])
@pytest.mark.parametrize(("index", "is_valid"), [(1024, True), (1220, True), (1224 + 200, False), (0, False)])
def test_an_offset_may_be_negative(code, index, is_valid):
    """The kernel loads at `index` - 1024 of 200 bytes, which the two other parameters follow."""
    table = np.arange(50, dtype=np.int32) + 7
    image = (KERNELS / "negative_offset.fatbin").read_bytes()
    ((result, arrays),), stderr = run_image(
        image, [Launch("look_back", 1, 1, [table.tobytes(), index, np.zeros(1, np.int32)])], code
    )
    assert (result == 0) == is_valid, stderr
    if is_valid:
        assert arrays[0][0] == table[(index - 1024) // 4]


@pytest.fixture
def cubin():
    """Return the bytes of the machine code."""
    from tfdet.audit import fatbin

    view = memoryview(IMAGE.read_bytes())
    (element,) = [item for item in fatbin.iter_elements(view, 0, len(view), lambda _: None) if item.kind == "elf"]
    return bytes(fatbin.read_payload(view, element))
