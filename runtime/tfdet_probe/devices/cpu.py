"""The processor.  It is kept busy by threads that multiply matrices on all cores."""

import os
import platform
import re

from tfdet_common.machine import read_system_file

from .base import Device

_SIDE = 384  # of the matrices: NumPy lets go of the interpreter while it multiplies


class Cpu(Device):
    kind = word = "cpu"
    placement = "CPU"

    def installed(self):
        return {"cpu": _model(), "cores": len(os.sched_getaffinity(0))}

    def describe(self, framework):
        return {"kind": self.kind, "model": self.kind}, {}

    def work(self):
        import numpy as np
        count = len(os.sched_getaffinity(0))

        def work():
            one = np.ones((_SIDE, _SIDE), np.float32)
            return lambda: one.dot(one)
        return "{} threads multiplying matrices".format(count), [work] * count


def _model():
    return read_system_file("/proc/cpuinfo", r"^model name\s*:\s*(.+)$", re.M) or platform.machine()
