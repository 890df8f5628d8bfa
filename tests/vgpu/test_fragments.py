"""wmma, ldmatrix and movmatrix of PTX give the bits of the machine code that ptxas makes of them."""

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image

IMAGE = (KERNELS / "fragments.fatbin").read_bytes()
RANDOM = np.random.default_rng(3)


def halves(size):
    return RANDOM.standard_normal(size).astype(np.float16)


def bfloats(size):
    return (RANDOM.standard_normal(size).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(size):
    return RANDOM.standard_normal(size).astype(np.float32)


def signed_bytes(size):
    return RANDOM.integers(-128, 128, size).astype(np.int8)


def unsigned_bytes(size):
    return RANDOM.integers(0, 256, size).astype(np.uint8)


def integers(size):
    return RANDOM.integers(-1000, 1000, size).astype(np.int32)


def words(size):
    return RANDOM.integers(0, 2**32, size, dtype=np.uint32)


# {kernel: (makes A and B, makes C)}
ARGUMENTS = {
    **dict.fromkeys(("f16_f32", "f16_8", "in_shared"), (halves, floats)),
    **dict.fromkeys(("f16_f16", "f16_32"), (halves, halves)),
    **dict.fromkeys(("bf16", "bf16_8", "bf16_32"), (bfloats, floats)),
    **dict.fromkeys(("u8", "u8_32"), (unsigned_bytes, integers)),
    "s8": (signed_bytes, integers),
    "tf32": (floats, floats),
    "matrices": (words, words),
}


@pytest.fixture(scope="module")
def launches():
    return [Launch(name, 1, 32, [make(1024), make(1024), c(512)]) for name, (make, c) in ARGUMENTS.items()]


@pytest.fixture(scope="module")
def results(launches):
    """{code: {kernel: (CUDA's result, arrays)}}."""
    return {code: dict(zip(ARGUMENTS, run_image(IMAGE, launches, code)[0], strict=True)) for code in ("ptx", "sass")}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_ptx_and_machine_code_give_one_result(name, launches, results):
    ((status, arrays), (other_status, other_arrays)) = (results[code][name] for code in ("ptx", "sass"))
    assert (status, other_status) == (0, 0)
    assert [array.tobytes() for array in arrays] == [array.tobytes() for array in other_arrays]
    before = launches[list(ARGUMENTS).index(name)].arguments[2]
    assert (arrays[2] != before).sum() >= 256


EIGHT = ", ".join(["%r0"] * 8)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        (f"wmma.load.a.sync.aligned.row.m16n16k16.f16 {{{EIGHT}}}, [%l0];", 0),
        (f"wmma.load.c.sync.aligned.row.m16n16k8.f32 {{{EIGHT}}}, [%l0];", 0),
        # ptxas refuses these, too.
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0}, [%l0];", 209),
        (f"wmma.load.a.sync.aligned.row.m16n16k8.f16 {{{EIGHT}}}, [%l0];", 209),
        (f"wmma.load.c.sync.aligned.row.m16n16k8.s32 {{{EIGHT}}}, [%l0];", 209),
        (f"wmma.load.a.sync.aligned.row.m16n16k16.f16 {{{EIGHT}}}, [%l0], %l0;", 209),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%l0];", 209),
        ("ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r0, [%l0];", 209),
        ("movmatrix.sync.aligned.m8n8.trans.b16 %r0, 5;", 209),
        ("movmatrix.sync.aligned.m8n8.b16 %r0, %r0;", 209),
    ],
)
def test_other_forms_are_refused(statement, status):
    text = (
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
        f".reg .b32 %r<2>; .reg .b64 %l0; ld.param.u64 %l0, [p]; mov.u32 %r0, 0;\n{statement}\nret; }}\0"
    )
    (result,), stderr = run_image(text.encode(), [Launch("k", 1, 32, [words(512)])], "ptx")
    assert result[0] == status, stderr


def test_a_product_of_bytes_is_exact(launches, results):
    a, b, c = (array.astype(np.int64) for array in launches[list(ARGUMENTS).index("s8")].arguments)
    product = a[:256].reshape(16, 16) @ b[:256].reshape(16, 16).T + c[:256].reshape(16, 16)
    assert np.array_equal(results["ptx"]["s8"][1][2][:256].reshape(16, 16), 2 * product)


def test_a_product_in_one_warp_is_proved(launches, tmp_path):
    report = tmp_path / "report"
    launch = launches[list(ARGUMENTS).index("in_shared")]
    ((status, _),), stderr = run_image(IMAGE, [launch], "ptx", VGPU_CHECK="order", VGPU_REPORT=str(report))
    assert status == 0, stderr
    assert '"proved": true' in report.read_text()
