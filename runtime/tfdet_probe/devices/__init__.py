"""The kinds of device, one file each; no other part of the probe depends on the kind."""

from .base import Device, DeviceChoices  # noqa: F401
from .cpu import Cpu
from .nvidia import Nvidia
from .vgpu import Vgpu

ALL = (Nvidia(), Cpu(), Vgpu())  # type: tuple[Device, ...]
CLI_NAMES = tuple(device.cli_name for device in ALL)


def by_cli_name(cli_name):
    # type: (str) -> Device
    """The device with this name after `--device`."""
    return next(device for device in ALL if device.cli_name == cli_name)


def describe_installation():
    # type: () -> dict[str, object]
    """What this machine has of all kinds of device, for the field `stack` of a record."""
    stack = {}  # type: dict[str, object]
    for device in ALL:
        stack.update(device.describe_installation())
    return stack
