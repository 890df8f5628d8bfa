"""The interface of the virtual GPU (the folder vgpu/) that the host and the probe share."""

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for type comments alone
    from typing import Mapping  # noqa: F401

NAME = "tfdet virtual GPU"  # prefix of the device name that frameworks see
FOLDER = "TFDET_VGPU"  # variable: the folder of its libraries, loaded instead of NVIDIA's
CPU_FALLBACKS = "VGPU_CPU_FALLBACKS"  # variable: vendor libraries computed on the CPU; never evidence
CODE = "VGPU_CODE"  # variable: PTX or machine code, where a container has both
CODES = ("ptx", "sass")  # its values
CHOSEN_CODE = "chosen_code"  # of a record's device details: the code that the caller chose; absent: the default
# Axes: what changes results besides a schedule, as device details of a record: the seed of the addresses of
# allocations, and the number of multiprocessors; absent: the default.  {detail: its variable}.
PLACEMENT, MULTIPROCESSORS = "placement", "multiprocessors"
AXIS_VARIABLES = {PLACEMENT: "VGPU_PLACEMENT", MULTIPROCESSORS: "VGPU_MULTIPROCESSORS"}
DEFAULT_MULTIPROCESSORS = 2
MAX_MULTIPROCESSORS = 1024
MAX_PLACEMENT = (1 << 32) - 1
# A schedule is the order in which blocks, warps and lanes execute; vgpu/src/core/schedule.h describes each kind.
SCHEDULES = "serial, reverse, random:SEED, adversary:SEED, atomics:SEED, pct:SEED,DEPTH, exchange or lanes"
_DECISIONS = re.compile(r"([0-9]{1,19}):([0-9]{1,19})(?:-([0-9]{1,19}))?")  # LAUNCH:FIRST-LAST or LAUNCH:INDEX
_DEPTH = "(?:0?[1-9]|[1-5][0-9]|6[0-4])"  # 1 to 64
_SEEDED = re.compile("exchange|lanes|(?:random|adversary|atomics):[0-9]{1,19}|pct:[0-9]{1,19}," + _DEPTH)


def is_schedule(text):
    # type: (str) -> bool
    """Return whether the virtual GPU accepts a schedule, as Schedule::parse of vgpu/src/core/schedule.cpp decides.

    All but serial and reverse may end in @LAUNCH:FIRST-LAST,...: only these scheduling decisions of these launches are
    the schedule's, all others are those of serial.
    """
    if text in ("serial", "reverse"):
        return True
    name, separator, decisions = text.partition("@")
    if not _SEEDED.fullmatch(name):
        return False
    ranges = [_DECISIONS.fullmatch(text_range) for text_range in decisions.split(",")] if separator else []
    return all(match and int(match.group(3) or match.group(2)) >= int(match.group(2)) for match in ranges)


def environ(folder, base_environ):
    # type: (str, Mapping[str, str]) -> dict[str, str]
    """Return the environment of a process that sees the virtual GPU and no other GPU.

    Args:
        folder: its libraries and its ptxas, which come first in LD_LIBRARY_PATH and PATH.
        base_environ: the environment to extend.
    """
    # CUDA_VISIBLE_DEVICES names real GPUs.
    variables = {name: value for name, value in base_environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    for name, default in (("LD_LIBRARY_PATH", ""), ("PATH", os.defpath)):
        variables[name] = ":".join(path for path in (folder, base_environ.get(name, default)) if path)
    return variables
