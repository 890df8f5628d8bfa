"""Damaged machine code is refused or ends with an error, and never ends the process: see sass_mutants.py."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from containers import KERNELS, Launch, run_image  # run_image: (CUDA's result, arrays) of each launch, and stderr
from virtual_device import build

MUTANTS = int(os.environ.get("VGPU_MUTANTS", "300"))


def unpack(name, folder):
    """Write the machine code of a container, or a cubin, to a file, and return its path."""
    from tfdet.audit import fatbin

    view = memoryview((KERNELS / name).read_bytes())
    path = folder / "damaged.cubin"
    if name.endswith(".cubin"):
        path.write_bytes(view)
        return path
    (element,) = [item for item in fatbin.iter_elements(view, 0, len(view), lambda _: None) if item.kind == "elf"]
    path.write_bytes(fatbin.read_payload(view, element))
    return path


@pytest.fixture(scope="module")
def cubin(tmp_path_factory):
    """Return the path of the machine code of warps.fatbin."""
    return unpack("warps.fatbin", tmp_path_factory.mktemp("cubin"))


@pytest.mark.parametrize("name", ["warps.fatbin", "lines.fatbin", "linked.cubin"])  # lines: line tables
def test_damaged_machine_code_does_not_end_the_process(name, tmp_path):
    cubin = unpack(name, tmp_path)
    worker = Path(__file__).with_name("sass_mutants.py")
    command = [sys.executable, str(worker), build(), str(cubin), "0", str(MUTANTS)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout


def test_a_cubin_without_container_is_loaded(cubin):
    values = np.arange(64, dtype=np.uint32)
    launch = Launch("dynamic_shared", 1, 64, [np.zeros(64, np.uint32), values, 64], shared=256)
    (answer,), stderr = run_image(cubin.read_bytes(), [launch])
    assert answer[0] == 0, stderr
    assert np.array_equal(answer[1][0], values[::-1] + (values + 1) % 64)


def test_machine_code_is_not_read_for_another_architecture(cubin):
    launch = Launch("dynamic_shared", 1, 64, [np.zeros(64, np.uint32), np.zeros(64, np.uint32), 64], shared=256)
    for capability in ("70", "90"):
        (answer,), stderr = run_image(cubin.read_bytes(), [launch], VGPU_COMPUTE_CAPABILITY=capability)
        assert answer[0] == 209
        assert "machine code without PTX" in stderr


@pytest.mark.parametrize(("value", "message"), [("PTX", "expected ptx or sass"), ("cubin", "expected ptx or sass")])
def test_an_invalid_code_setting_ends_the_program(value, message):
    process = subprocess.run(
        [sys.executable, "-c", f"import ctypes; ctypes.CDLL({build()!r}).cuInit(0)"],
        env={**os.environ, "VGPU_CODE": value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2
    assert message in process.stderr
