"""Machine code of several files that nvlink linked (nvcc -rdc=true): kernels call functions of other sections."""

import json

import numpy as np
from containers import KERNELS, Launch, run_image

THREADS = 64
INDEX = np.arange(THREADS)
FIBONACCI = np.array([0, 1, 1, 2, 3, 5, 8, 13])
TWICE = 2.0  # what the initialized pointer to twice() adds


def image():
    return (KERNELS / "linked.cubin").read_bytes()


def run(*kernels, dtype=np.float32):
    """Run the kernels one after the other; return the array of the last one, and what was printed."""
    results, stderr = run_image(image(), [Launch(name, 1, THREADS, [np.zeros(THREADS, dtype)]) for name in kernels])
    assert [error for error, _ in results] == [0] * len(kernels), stderr
    return results[-1][1][0], stderr


def test_a_call_of_another_file():
    values, _ = run("direct")
    assert values.tolist() == (1.5 * INDEX + INDEX % 4 + 1).tolist()


def test_a_recursive_function():
    values, _ = run("recursive", dtype=np.int32)
    assert values.tolist() == FIBONACCI[INDEX & 7].tolist()


def test_a_pointer_that_one_kernel_stores_and_another_calls():
    values, stderr = run("store", "through_pointers")
    expected = np.where(INDEX % 2, INDEX / 2, 2.0 * INDEX) + TWICE
    assert values.tolist() == expected.tolist()
    assert stderr.splitlines() == ["3.5"]


def test_virtual_functions():
    values, _ = run("virtual_functions")
    assert values.tolist() == np.where(INDEX % 2, 9.0 * INDEX**2, 2.0 * INDEX**2).tolist()


def test_a_pointer_that_leads_nowhere_is_a_fault():
    """The pointer was not stored: a call of address 0 would run the kernel anew."""
    launches = [Launch("through_pointers", 1, THREADS, [np.zeros(THREADS, np.float32)])]
    ((error, _),), _ = run_image(image(), launches)
    assert error != 0


def test_a_fault_names_the_function():
    launches = [Launch("fault", 1, THREADS, [np.zeros(THREADS, np.float32)])]
    ((error, _),), stderr = run_image(image(), launches)
    assert error == 700 and " in _Z4readPKf, offset " in stderr


def test_a_report_names_the_function_and_its_line(tmp_path):
    report = tmp_path / "report"
    launches = [Launch("sum", 1, THREADS, [np.zeros(THREADS, np.float32)])]
    ((error, _),), stderr = run_image(image(), launches, VGPU_CHECK="order", VGPU_REPORT=str(report))
    assert error == 0, stderr
    (launch,) = [line for line in map(json.loads, report.read_text().splitlines()) if line.get("kernel") == "sum"]
    (atomic,) = launch["order_dependent"]
    assert atomic["position"]["function"] == "_Z3addPff"
    source = (KERNELS / "linked_functions.cu").read_text().splitlines()
    (number,) = [number for number, line in enumerate(source, 1) if "atomicAdd" in line]
    assert atomic["position"]["source"][-1].endswith(f"linked_functions.cu:{number}")
