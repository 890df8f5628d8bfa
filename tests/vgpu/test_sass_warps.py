"""The interpreter of sm_80 machine code: kernels of warps and blocks against their PTX, under several schedules."""

import json

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image

SCHEDULES = ("serial", "reverse", "random:1", "adversary:2", "atomics:3")
WORDS = 512
# Kernels whose results no schedule changes.
KERNELS_OF_ONE_RESULT = (
    *(
        "shuffles",
        "votes",
        "masks",
        "masked_ballot",
        "masked_sum",
        "tickets",
        "grid_barrier",
        "parts_of_warps",
        "shared_scan",
        "dynamic_shared",
        "block_votes",
        "integer_atomics",
        "swaps",
    ),
    *("halves", "bfloats", "recursion", "pointers", "stack", "switches", "generic_pointers", "asynchronous_copies"),
    *("named_barriers", "special_registers", "tensor_cores"),
)


def words(seed):
    """Return WORDS random 32-bit numbers."""
    return np.random.default_rng(seed).integers(0, 2**32, WORDS, dtype=np.uint32)


def launch(name, block=128):
    """Return the launch of a kernel on random words."""
    values = words(5) & 0x3BFF3BFF if name == "halves" else words(5)  # halves that are numbers
    grid = 1 if name == "tensor_cores" else WORDS // block
    block = 32 if name == "tensor_cores" else block
    arguments, is_cooperative = [np.zeros(WORDS, np.uint32), values, WORDS], name == "grid_barrier"
    return Launch(name, grid, block, arguments, shared=4 * block, cooperative=is_cooperative)


def run_kernels(names, code, schedule, **variables):
    """Run the kernels, and return {name: result}."""
    results, stderr = run_image(
        (KERNELS / "warps.fatbin").read_bytes(), [launch(name) for name in names], code, schedule, **variables
    )
    for name, (error, _) in zip(names, results, strict=True):
        assert error == 0, f"{name}: {stderr}"
    return {name: arrays[0] for name, (_, arrays) in zip(names, results, strict=True)}


@pytest.fixture(scope="module")
def ptx_results():
    """Return the results of the kernels' PTX."""
    return run_kernels(KERNELS_OF_ONE_RESULT, "ptx", "serial")


@pytest.fixture(scope="module", params=SCHEDULES)
def machine_code_results(request):
    """Return the results of the kernels' machine code."""
    return run_kernels(KERNELS_OF_ONE_RESULT, "sass", request.param)


@pytest.mark.parametrize("name", KERNELS_OF_ONE_RESULT)
def test_machine_code_agrees_with_its_ptx(ptx_results, machine_code_results, name):
    assert ptx_results[name].any()
    differ = np.flatnonzero(machine_code_results[name] != ptx_results[name])
    assert not len(differ), (differ[:5], machine_code_results[name][differ[:5]], ptx_results[name][differ[:5]])


def test_threads_read_behind_a_grid_barrier(machine_code_results):
    assert np.array_equal(machine_code_results["grid_barrier"], words(5)[::-1])


@pytest.mark.parametrize("code", ["ptx", "sass"])
def test_a_half_may_be_the_last_of_its_allocation(code):
    """Machine code adds to it by a compare-and-swap of the aligned word, of which the allocation has one half."""
    halves, image = np.zeros(7, np.float16), (KERNELS / "warps.fatbin").read_bytes()
    ((error, arrays),), stderr = run_image(image, [Launch("last_half", 1, 32, [halves, words(5), 7])], code)
    assert (error, arrays[0].tolist()) == (0, [0] * 6 + [32]), stderr
    ((error, _),), _ = run_image(image, [Launch("last_half", 1, 32, [halves, words(5), 9])], code)
    assert error == 700


def test_tensor_cores_give_products(machine_code_results):
    values = words(5)[:256].astype(np.int64)
    a, b = (values & 15) - 7.0, (values >> 4 & 15) * 0.25
    expected = a.reshape(16, 16) @ b.reshape(16, 16).T + 0.5  # exact in single precision
    assert np.array_equal(machine_code_results["tensor_cores"][:256].view(np.float32).reshape(16, 16), expected)


def test_asynchronous_copies_are_complete_after_the_wait(machine_code_results):
    assert np.array_equal(machine_code_results["asynchronous_copies"], words(5)[np.arange(WORDS) ^ 1])


def test_memcheck_reports_nothing_in_correct_kernels():
    image = (KERNELS / "warps.fatbin").read_bytes()
    results, stderr = run_image(image, [launch("shared_scan"), launch("dynamic_shared")], VGPU_CHECK="memcheck")
    assert [error for error, _ in results] == [0, 0]
    assert "memcheck" not in stderr


def test_sums_of_floats_depend_on_the_schedule_and_repeat():
    names = ["float_atomics"]
    results = {schedule: run_kernels(names, "sass", schedule)["float_atomics"].tobytes() for schedule in SCHEDULES}
    assert len(set(results.values())) > 1
    assert results["random:1"] == run_kernels(names, "sass", "random:1")["float_atomics"].tobytes()
    serial = np.frombuffer(results["serial"], np.uint32)
    of_ptx = run_kernels(names, "ptx", "serial")["float_atomics"]
    assert np.allclose(serial[:5].view(np.float32), of_ptx[:5].view(np.float32), rtol=1e-5)


def report_lines(tmp_path, names, code):
    """Run the kernels, and return the lines of the report."""
    path = tmp_path / f"{code}.jsonl"
    run_kernels(names, code, "serial", VGPU_REPORT=str(path))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_report_names_code_and_offset(tmp_path):
    (of_sass,) = report_lines(tmp_path, ["float_atomics"], "sass")
    (of_ptx,) = report_lines(tmp_path, ["float_atomics"], "ptx")
    assert (of_sass["code"], of_ptx["code"]) == ("sm_80", "ptx")
    assert of_sass["order_dependent"]
    assert all(finding["line"] % 16 == 0 for finding in of_sass["order_dependent"])


def test_machine_code_is_proved_as_its_ptx(tmp_path):
    path = tmp_path / "order.jsonl"
    verdicts = {}
    for code in ("ptx", "sass"):
        run_kernels(["shared_scan"], code, "serial", VGPU_REPORT=str(path), VGPU_CHECK="order")
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        (verdicts[code],) = [line["order"] for line in lines if "kernel" in line]
        path.unlink()
    assert verdicts["ptx"]["proved"], verdicts["ptx"]
    assert verdicts["sass"]["proved"], verdicts["sass"]


@pytest.mark.parametrize(
    ("name", "error", "words_of_it"), [("trap_at_7", 719, "a trap"), ("beyond", 700, "outside of what")]
)
def test_faults_name_the_offset(name, error, words_of_it):
    values = np.full(32, 7, np.uint32)
    (answer,), stderr = run_image(
        (KERNELS / "warps.fatbin").read_bytes(), [Launch(name, 1, 32, [values, values, 1 << 20])]
    )
    assert answer[0] == error
    assert words_of_it in stderr and f"in {name}, offset " in stderr


@pytest.mark.parametrize(
    ("file", "code"), [("warps.fatbin", "sass"), ("warps.fatbin", "ptx"), ("direct_calls.cubin", "sass")]
)
def test_a_kernel_prints_and_its_assertion_is_reported(file, code):
    """The functions are called by addresses in a constant bank, or, with relocations, in the code."""
    values = np.arange(64, dtype=np.uint32)
    image, out = (KERNELS / file).read_bytes(), np.zeros(64, np.uint32)
    ((error, _),), stderr = run_image(image, [Launch("printed", 1, 64, [out, values, 64])], code)
    assert error == 0
    ((error, _),), assertion_stderr = run_image(image, [Launch("asserted", 1, 64, [out, values, 64])], code)
    assert error == 710
    assert "warps.cu" in assertion_stderr and "assertion `in[i] != 5` failed" in assertion_stderr
    assert stderr.splitlines() == [
        "0 says 0.00, none 1099511627776",
        "1 says 0.50, some 1099511627776",
        "2 says 1.00, some 1099511627776",
    ]


def test_an_unknown_relocation_refuses_only_its_function():
    from tfdet.audit.elf import read_elf

    image = bytearray((KERNELS / "direct_calls.cubin").read_bytes())
    elf = read_elf(memoryview(bytes(image)))
    (row,) = elf.find(b".rel.text.printed")
    image[int(elf.sections["offset"][row]) + 8] = 0x7F  # the type of the first relocation
    values, out = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    launches = [Launch(name, 1, 64, [out, values, 64]) for name in ("printed", "asserted")]
    (printed, asserted), stderr = run_image(bytes(image), launches)
    assert (printed[0], asserted[0]) == (209, 0), stderr
    assert "printed: machine code that is not linked" in stderr
    assert (asserted[1][0] == 1).all()
