"""The GPUs of this host as nvidia-smi lists them: it comes with the driver, and a bare host has no package for NVML."""

import collections
import subprocess

Gpu = collections.namedtuple("Gpu", "name capability mebibytes")  # capability: (major, minor); None: not told
Nvidia = collections.namedtuple("Nvidia", "driver gpus")


def query_gpus():
    """The driver's version and all GPUs; None without a driver that answers."""
    told = query("driver_version,name,memory.total,compute_cap")
    if told is None:  # compute_cap came with driver 510
        told = query("driver_version,name,memory.total")
    if told is None:
        return None
    gpus = [Gpu(row[1], read_capability(row[3:]), int(row[2]) if row[2].isdigit() else 0) for row in told]
    return Nvidia(told[0][0] if told else "", gpus)


def query(fields):
    """Rows of the fields' texts, a row for each GPU; None where nvidia-smi is missing or refuses."""
    command = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
    try:
        out = subprocess.check_output(command, stderr=subprocess.DEVNULL, universal_newlines=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.split(", ") for line in out.splitlines() if line]


def read_capability(texts):
    """(major, minor) of ["9.0"]; None of [] and of what is no number."""
    major, _, minor = (texts[0] if texts else "").partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
