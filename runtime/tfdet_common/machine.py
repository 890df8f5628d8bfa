"""A name for this machine that tells records of two machines apart and gives neither away."""

import hashlib
import os
import platform
import re


def told_by(path, pattern, flags=0):
    """The first group of the pattern in a file of the system; None where there is no such file, or nothing like it."""
    try:
        with open(path) as source:
            found = re.search(pattern, source.read(), flags)
    except (IOError, OSError):
        return None
    return found.group(1) if found else None


def machine_name():
    """12 hex digits, the same in every engine on one machine (the host hands it to containers)."""
    return short_hash("tfdet machine " + (_identity() or platform.node()))


def _identity():
    # A container that the host told nothing: its own machine-id is its image's, shared by all
    # hosts; the boot is the host's.
    inside = os.path.exists("/.dockerenv")
    try:
        with open("/proc/sys/kernel/random/boot_id" if inside else "/etc/machine-id") as source:
            return source.read().strip()
    except (IOError, OSError):
        return ""


def device_key(gpu):
    """nvidia-h100-pcie from NVIDIA H100 PCIe."""
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return slug if slug.startswith("nvidia-") else "nvidia-" + slug


def short_hash(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
