import pytest
from virtual_device import Device, build


@pytest.fixture(scope="session")
def device():
    return Device(build())
