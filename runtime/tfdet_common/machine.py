"""A pseudonym of this machine: it distinguishes the records of two machines and does not reveal either."""

import hashlib
import os
import platform
import re


def read_system_file(path, pattern, flags=0):
    """Search a file of the system.

    Args:
        path: such as /proc/cpuinfo.
        pattern: a regular expression with a group.
        flags: of the module re.

    Returns:
        The text of the pattern's first group, or None if the file is missing or does not match.
    """
    try:
        with open(path) as source:
            match = re.search(pattern, source.read(), flags)
    except (IOError, OSError):
        return None
    return match.group(1) if match else None


told_by = read_system_file  # the name in tfdet_probe/core/batches.py, whose tokens are hashed into its results


def machine_name():
    """Return the machine's pseudonym: 12 hex digits, the same in the host's containers (the host passes it)."""
    return short_hash("tfdet machine " + (_identity() or platform.node()))


def _identity():
    # In a container the machine-id is the image's, the same on all hosts; the boot id is the host's.
    is_in_container = os.path.exists("/.dockerenv")
    try:
        with open("/proc/sys/kernel/random/boot_id" if is_in_container else "/etc/machine-id") as source:
            return source.read().strip()
    except (IOError, OSError):
        return ""


def device_key(gpu):
    """Return the key by which the project's records name a GPU model: "nvidia-h100-pcie" for "NVIDIA H100 PCIe"."""
    slug = re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-")
    return slug if slug.startswith("nvidia-") else "nvidia-" + slug


def short_hash(text):
    """Return the first 12 hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
