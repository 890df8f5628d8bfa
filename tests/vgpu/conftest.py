"""Fixtures of the tests of the virtual GPU."""

import os
import subprocess

import numpy as np
import pytest
from fuzzing.ptxas_oracle import PTXAS
from texturing import Arrays
from vendor_library import Library
from virtual_device import Device, build, kernel


@pytest.fixture(scope="session")
def device():
    """Return the virtual GPU in this process, built once; a kernel ends after 20 million instructions."""
    os.environ["VGPU_MAX_INSTRUCTIONS"] = "20000000"  # instructions of a launch: a test that never ends shall end
    return Device(build())


@pytest.fixture
def arrays(device):
    """Return functions for CUDA arrays, texture objects and surface objects on the device."""
    return Arrays(device)


# Schedules, the orders in which threads run.  adversary: another warp goes first at each memory operation that others
# may see; atomics: an atomic may let others at its address execute first; the numbers are seeds.
@pytest.fixture(params=["serial", "reverse", "random:1", "random:2", "adversary:3", "atomics:4"])
def launch(device, request):
    """Return a function that runs a PTX body on an array under each schedule and returns the array as a list.

    The body reads the thread's value into %n with virtual_device.LOAD, and writes %r9 back with STORE.
    """

    def run(body, values, grid=1, block=64, head="", **options):
        code, (result, *_), stderr = device.run_in_child(
            kernel(body, ["p0"], head=head),
            [np.array(values, np.uint32)],
            request.param,
            grid=grid,
            block=block,
            **options,
        )
        assert code == 0, stderr
        return result.tolist()

    return run


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return a copy of the device's library with the CPU fallbacks of vendor libraries switched on."""
    return Library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def compiled(tmp_path):
    """Return a function that compiles PTX to machine code of sm_80."""
    if not PTXAS:
        pytest.skip("no ptxas here")

    def code_of(text):
        source, code = tmp_path / "k.ptx", tmp_path / "k.cubin"
        source.write_text(text, "utf-8")
        subprocess.run([PTXAS, "-arch=sm_80", str(source), "-o", str(code)], check=True)
        return code.read_bytes()

    return code_of
