"""What the host and the probe both know of the virtual GPU (the folder vgpu/)."""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Mapping  # noqa: F401

NAME = "tfdet virtual GPU"  # how the name begins that frameworks are told
FOLDER = "TFDET_VGPU"  # of its libraries, which stand for NVIDIA's
STAND_INS = "VGPU_STAND_INS"  # for closed libraries: what they compute is no evidence
SCHEDULES = "serial, reverse, random:SEED, adversary:SEED, atomics:SEED, exchange or lanes"
_CHOICES = re.compile(r"([0-9]{1,19}):([0-9]{1,19})(?:-([0-9]{1,19}))?")  # LAUNCH:FROM-TO or LAUNCH:ONE
_SEEDED = re.compile(r"exchange|lanes|(?:random|adversary|atomics):[0-9]{1,19}")


def is_schedule(text):
    # type: (str) -> bool
    """Does the device know this schedule?  As Schedule::parse of vgpu/src/core/schedule.cpp does."""
    if text in ("serial", "reverse"):
        return True
    name, mark, choices = text.partition("@")
    if not _SEEDED.fullmatch(name):
        return False
    found = [_CHOICES.fullmatch(one) for one in choices.split(",")] if mark else []
    return all(one and int(one.group(3) or one.group(2)) >= int(one.group(2)) for one in found)


def environ(folder, before):
    # type: (str, Mapping[str, str]) -> dict[str, str]
    """`before`, with which a process sees the virtual GPU and no other: its libraries come first, and its own ptxas."""
    found = {name: value for name, value in before.items() if name != "CUDA_VISIBLE_DEVICES"}  # speaks of cards
    for name, otherwise in (("LD_LIBRARY_PATH", ""), ("PATH", os.defpath)):
        found[name] = ":".join(part for part in (folder, before.get(name, otherwise)) if part)
    return found
