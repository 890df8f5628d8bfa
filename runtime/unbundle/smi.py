"""The GPUs of this host as nvidia-smi lists them: it comes with the driver, while the host may lack an NVML package."""

import collections
import subprocess

Gpu = collections.namedtuple("Gpu", "name capability mebibytes")  # capability: (major, minor), or None if unknown
Nvidia = collections.namedtuple("Nvidia", "driver gpus")


def query_gpus():
    """Return the driver's version and all GPUs; None without a driver that answers."""
    rows = query("driver_version,name,memory.total,compute_cap")
    if rows is None:  # compute_cap came with driver 510
        rows = query("driver_version,name,memory.total")
    if rows is None:
        return None
    gpus = [Gpu(row[1], read_capability(row[3:]), int(row[2]) if row[2].isdigit() else 0) for row in rows]
    return Nvidia(rows[0][0] if rows else "", gpus)


def query(fields):
    """Return rows of the fields' texts, a row for each GPU; None if nvidia-smi is missing or fails."""
    command = ["nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits"]
    try:
        out = subprocess.check_output(command, stderr=subprocess.DEVNULL, universal_newlines=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.split(", ") for line in out.splitlines() if line]


def read_capability(texts):
    """Return (major, minor) of ["9.0"]; None of [] and of text that is not a number."""
    major, _, minor = (texts[0] if texts else "").partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None
