"""The CPU.  Under contention, threads multiply matrices on all cores."""

import os
import platform
import re

from tfdet_common.machine import read_system_file

from .base import Device

_SIDE = 384  # rows and columns of the matrices: NumPy releases the interpreter lock while it multiplies


class Cpu(Device):
    """The CPU; devices.base.Device says what each method does."""

    kind = cli_name = "cpu"
    placement = "CPU"
    is_shared_by_ranks = True

    def describe_installation(self):
        return {"cpu": _model(), "cores": len(os.sched_getaffinity(0))}

    def describe(self, framework):
        return {"kind": self.kind, "model": self.kind}, {}

    def contention_work(self):
        import numpy as np
        count = len(os.sched_getaffinity(0))

        def make_step():
            matrix = np.ones((_SIDE, _SIDE), np.float32)
            return lambda: matrix.dot(matrix)
        return "{} threads multiplying matrices".format(count), [make_step] * count


def _model():
    return read_system_file("/proc/cpuinfo", r"^model name\s*:\s*(.+)$", re.M) or platform.machine()
