import os

import pytest
from virtual_device import Device, build


@pytest.fixture(scope="session")
def device():
    os.environ["VGPU_LIMIT"] = "20000000"  # instructions of a launch: a test that never ends shall end
    return Device(build())
