"""The kinds of device, one file each: nothing else in the probe asks what kind a device is."""

from .base import Device  # noqa: F401  # of a type comment
from .cpu import Cpu
from .nvidia import Nvidia
from .vgpu import Vgpu

ALL = (Nvidia(), Cpu(), Vgpu())  # type: tuple[Device, ...]
WORDS = tuple(device.word for device in ALL)


def find(word):
    # type: (str) -> Device
    """The device that `--device` calls so."""
    return next(device for device in ALL if device.word == word)


def installed():
    # type: () -> dict[str, object]
    """Of the stack: what there is on this machine, of all kinds."""
    stack = {}  # type: dict[str, object]
    for device in ALL:
        stack.update(device.installed())
    return stack
