"""What the bundle needs of this host, whatever the device: processor, glibc, Python, memory."""

import os
import platform
import re
import sys

from tfdet_common.interpreters import find_python
from tfdet_common.versions import numbers
from unbundle.check import Check, missing, ok
from unbundle.stop import GIB

# Bytes of free memory below which a run has no chance: TensorFlow, and with a GPU CUDA's libraries.
MEMORY = {"cpu": 3 * GIB // 2, "gpu": 4 * GIB}


def check_processor():
    name, machine = "processor", platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return missing(name, 3, "{}, the bundle is for x86_64".format(machine), "Take the bundle to another host.")
    if "avx" not in processor_flags():
        return missing(name, 3, "no AVX, which TensorFlow is built with", "Take the bundle to a newer host.")
    return ok(name, machine)


def processor_flags():
    found = re.search(r"^flags\s*:\s*(.+)$", read_text("/proc/cpuinfo"), re.M)
    return found.group(1).split() if found else ["avx"]


def check_libc(bundle):
    name, least = "glibc", bundle["glibc"]
    try:
        found = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[-1]
    except (AttributeError, IndexError, OSError, ValueError):
        return missing(name, 3, "not there, the packages need {}".format(least), "Take the bundle to another host.")
    if numbers(found) < numbers(least):
        return missing(
            name, 3, "{} is too old, the packages need {}".format(found, least), "Take the bundle to a newer host."
        )
    return ok(name, "{} (needs {})".format(found, least))


def check_python(bundle):
    name, wanted = "Python", bundle["python"]
    found = find_python(wanted)
    if found is None:
        here = "{}.{}".format(*sys.version_info[:2])
        return missing(
            name,
            3,
            "{} here, the bundle is for CPython {}".format(here, wanted),
            "Put python{0} on the PATH, or bundle again: tfdet bundle {1} --python {2}".format(
                wanted, bundle["environment"], here
            ),
        )
    return ok(name, "{} ({})".format(wanted, found))


def check_memory(device):
    name, least = "memory", MEMORY[device]
    found = re.search(r"^MemAvailable:\s*(\d+) kB", read_text("/proc/meminfo"), re.M)
    if not found:
        return Check(name, "warn", "how much is free is unknown", "", 0)
    free = int(found.group(1)) << 10
    detail = "{:.1f} GiB free".format(free / GIB)
    if free < least:
        return missing(name, 3, "{}, a run takes {:.1f}".format(detail, least / GIB), "End something else first.")
    return ok(name, detail)


def read_text(path):
    try:
        with open(path, errors="replace") as source:
            return source.read()
    except (IOError, OSError):
        return ""
