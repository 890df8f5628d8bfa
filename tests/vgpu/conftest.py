import os

import numpy as np
import pytest
from closed_library import Library
from texturing import Arrays
from virtual_device import Device, build, kernel


@pytest.fixture(scope="session")
def device():
    os.environ["VGPU_MAX_INSTRUCTIONS"] = "20000000"  # instructions of a launch: a test that never ends shall end
    return Device(build())


@pytest.fixture
def arrays(device):
    return Arrays(device)


@pytest.fixture(params=["serial", "reverse", "random:1", "random:2", "adversary:3", "atomics:4"])
def launch(device, request):
    """The numbers that a body leaves in %r9 where its array has %n: see LOAD and STORE."""

    def run(body, values, grid=1, block=64, head="", **how):
        code, (made, *_), said = device.run_in_child(
            kernel(body, ["p0"], head=head), [np.array(values, np.uint32)], request.param, grid=grid, block=block, **how
        )
        assert code == 0, said
        return made.tolist()

    return run


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Closed libraries with their stand-ins, in a process of their own."""
    return Library(tmp_path_factory.mktemp("library"))
