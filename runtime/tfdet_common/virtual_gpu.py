"""What the host and the probe both know of the virtual GPU (the folder vgpu/)."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Mapping  # noqa: F401

NAME = "tfdet virtual GPU"  # how the name begins that frameworks are told
FOLDER = "TFDET_VGPU"  # of its libraries, which stand for NVIDIA's
STAND_INS = "VGPU_STAND_INS"  # for closed libraries: what they compute is no evidence


def environ(folder, before):
    # type: (str, Mapping[str, str]) -> dict[str, str]
    """`before`, with which a process sees the virtual GPU and no other: its libraries come first, and its own ptxas."""
    found = {name: value for name, value in before.items() if name != "CUDA_VISIBLE_DEVICES"}  # speaks of cards
    for name, otherwise in (("LD_LIBRARY_PATH", ""), ("PATH", os.defpath)):
        found[name] = ":".join(part for part in (folder, before.get(name, otherwise)) if part)
    return found
