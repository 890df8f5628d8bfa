"""The software and hardware that ran: versions of everything, for the record."""

import json
import os
import platform
import re
from typing import TYPE_CHECKING

import numpy as np

from tfdet_common.machine import machine_name, read_system_file

from .. import devices

if TYPE_CHECKING:  # for type comments alone
    from .launch import Place  # noqa: F401


def describe(place):
    # type: (Place) -> dict
    """{framework, stack, device, machine} of this process; the framework's runtime starts, so call it in a child.

    `device` of the answer is None if the framework sees no such device.
    """
    told = place.framework.describe()
    device, more = place.device.describe(place.framework)
    stack = {
        "python": platform.python_version(), "numpy": np.__version__, "image": os.environ.get("TFDET_IMAGE"),
        "image_digest": os.environ.get("TFDET_IMAGE_DIGEST"), "engine": os.environ.get("TFDET_ENGINE", "none"),
        "os": _os(), "keras": told.get("keras"), "cuda": told.get("cuda"), "cudnn": told.get("cudnn"),
    }
    for part in (devices.installed(), more, _bundle()):
        stack.update(part)
    return {"framework": {"name": place.framework.name, "version": told["version"]}, "stack": stack, "device": device,
            "machine": os.environ.get("TFDET_MACHINE") or machine_name()}


def _bundle():
    """What was trimmed, stubbed or taken from the host, where the environment was carried here by `tfdet bundle`."""
    path = os.environ.get("TFDET_BUNDLE")
    if not path:
        return {}
    with open(path) as source:
        return {"bundle": json.load(source)}


def _os():
    return read_system_file("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)', re.M) or platform.platform()
