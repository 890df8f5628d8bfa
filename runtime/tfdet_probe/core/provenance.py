"""The provenance of a record: versions of the software and hardware that ran."""

import json
import os
import platform
import re
from typing import TYPE_CHECKING

import numpy as np

from tfdet_common.machine import machine_name, read_system_file

from .. import devices

if TYPE_CHECKING:  # for type comments alone
    from .child_job import RunTarget  # noqa: F401


def describe(target):
    # type: (RunTarget) -> dict
    """Describe what this process runs on.  It starts the framework's runtime, so it is called in a child.

    Args:
        target: framework and device.

    Returns:
        {framework, stack, device, machine}, as in a record; device is None if the framework does not see it.
    """
    # The TFDET_* variables are what the host passes; TFDET_ENGINE: what brought the environment up, such as docker.
    described = target.framework.describe()
    device, device_stack = target.device.describe(target.framework)
    stack = {
        "python": platform.python_version(), "numpy": np.__version__, "image": os.environ.get("TFDET_IMAGE"),
        "image_digest": os.environ.get("TFDET_IMAGE_DIGEST"), "engine": os.environ.get("TFDET_ENGINE", "none"),
        "os": _os(), "keras": described.get("keras"), "cuda": described.get("cuda"), "cudnn": described.get("cudnn"),
    }
    for part in (devices.describe_installation(), device_stack, _bundle()):
        stack.update(part)
    framework = {"name": target.framework.name, "version": described["version"]}
    return {"framework": framework, "stack": stack, "device": device,
            "machine": os.environ.get("TFDET_MACHINE") or machine_name()}


def _bundle():
    """What was trimmed, stubbed or used from the host, if this environment was unpacked from an archive (a bundle)."""
    path = os.environ.get("TFDET_BUNDLE")
    if not path:
        return {}
    with open(path) as source:
        return {"bundle": json.load(source)}


def _os():
    return read_system_file("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)', re.M) or platform.platform()
