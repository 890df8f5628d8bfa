"""The check of this host against what the bundle requires on any device: CPU, glibc, Python, memory.

missing(name, 3, problem, advice): 3 is the exit code of a host that cannot run the bundle.
"""

import os
import platform
import re
import sys

from tfdet_common.interpreters import find_python
from tfdet_common.versions import numbers
from unbundle.check import Check, missing, ok
from unbundle.errors import GIB

# Bytes of free memory that a run needs at least: for TensorFlow, and with a GPU for CUDA's libraries.
MIN_FREE_MEMORY = {"cpu": 3 * GIB // 2, "gpu": 4 * GIB}


def check_cpu():
    name, machine = "CPU", platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return missing(name, 3, "{}, the bundle is for x86_64".format(machine), "Use another host.")
    if "avx" not in cpu_flags():
        return missing(name, 3, "no AVX, which TensorFlow is built with", "Use a newer host.")
    return ok(name, machine)


def cpu_flags():
    match = re.search(r"^flags\s*:\s*(.+)$", read_text("/proc/cpuinfo"), re.M)
    return match.group(1).split() if match else ["avx"]


def check_libc(bundle):
    name, minimum = "glibc", bundle["glibc"]
    try:
        version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[-1]
    except (AttributeError, IndexError, OSError, ValueError):
        return missing(name, 3, "not found, the packages need {}".format(minimum), "Use another host.")
    if numbers(version) < numbers(minimum):
        return missing(
            name, 3, "{} is too old, the packages need {}".format(version, minimum), "Use a newer host."
        )
    return ok(name, "{} (needs {})".format(version, minimum))


def check_python(bundle):
    name, required = "Python", bundle["python"]
    python = find_python(required)
    if python is None:
        own_version = "{}.{}".format(*sys.version_info[:2])
        return missing(
            name,
            3,
            "{} here, the bundle is for CPython {}".format(own_version, required),
            "Put python{0} on the PATH, or bundle again: tfdet bundle {1} --python {2}".format(
                required, bundle["environment"], own_version
            ),
        )
    return ok(name, "{} ({})".format(required, python))


def check_memory(device):
    name, minimum = "memory", MIN_FREE_MEMORY[device]
    match = re.search(r"^MemAvailable:\s*(\d+) kB", read_text("/proc/meminfo"), re.M)
    if not match:
        return Check(name, "warn", "unknown", "", 0)
    free = int(match.group(1)) << 10
    detail = "{:.1f} GiB free".format(free / GIB)
    if free < minimum:
        return missing(name, 3, "{}, a run needs {:.1f}".format(detail, minimum / GIB), "End other programs first.")
    return ok(name, detail)


def read_text(path):
    try:
        with open(path, errors="replace") as source:
            return source.read()
    except (IOError, OSError):
        return ""
