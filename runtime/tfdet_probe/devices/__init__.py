"""The kinds of device, one file each: nothing else in the probe asks what kind a device is."""

from .cpu import Cpu
from .nvidia import Nvidia

ALL = (Nvidia(), Cpu())
WORDS = tuple(device.word for device in ALL)


def find(word):
    """The device that `--device` calls so."""
    return next(device for device in ALL if device.word == word)


def installed():
    """Of the stack: what there is on this machine, of all kinds."""
    stack = {}
    for device in ALL:
        stack.update(device.installed())
    return stack
