"""The software and hardware that ran: versions of everything, for the record."""

import json
import os
import platform
import re
import subprocess

import numpy as np

from .machine import device_key, machine_name, short_hash


def describe(device):
    """{stack, device, machine} of this process; starts TensorFlow's runtime, so call it in a child.

    `device` of the answer is the key of the evidence: cpu, or a GPU's model such as nvidia-h200;
    None if no such device is there.
    """
    import tensorflow as tf
    build = _build_info(tf)
    stack = {
        "tensorflow": tf.__version__, "python": platform.python_version(), "numpy": np.__version__,
        "cuda": build.get("cuda_version"), "cudnn": build.get("cudnn_version"), "driver": _driver(),
        "image": os.environ.get("TFDET_IMAGE"), "image_digest": os.environ.get("TFDET_IMAGE_DIGEST"),
        "engine": os.environ.get("TFDET_ENGINE", "none"), "os": _os(), "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)), "keras": _keras_version(tf),
        "gpu": None, "compute_capability": None, "gpu_uuid_hash": None,
    }
    stack.update(_bundle())
    key = "cpu"
    if device == "gpu":
        key = _gpu(stack)
    return {"stack": stack, "device": key, "machine": os.environ.get("TFDET_MACHINE") or machine_name()}


def _gpu(stack):
    from tensorflow.python.client import device_lib
    found = [d.physical_device_desc for d in device_lib.list_local_devices() if d.device_type == "GPU"]
    if not found:
        return None
    name = re.search(r"name: ([^,]+)", found[0])
    capability = re.search(r"compute capability: ([\d.]+)", found[0])
    stack["gpu"] = name.group(1).strip() if name else "unknown"
    stack["compute_capability"] = capability.group(1) if capability else None
    uuid = _output(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]).splitlines()
    stack["gpu_uuid_hash"] = short_hash(uuid[0]) if uuid else None
    return device_key(stack["gpu"])


def _bundle():
    """What was trimmed, stubbed or taken from the host, where the environment was carried here by `tfdet bundle`."""
    path = os.environ.get("TFDET_BUNDLE")
    if not path:
        return {}
    with open(path) as source:
        return {"bundle": json.load(source)}


def _build_info(tf):
    try:
        return dict(tf.sysconfig.get_build_info())
    except AttributeError:  # before 2.3
        return {}


def _keras_version(tf):
    try:
        return getattr(tf.keras, "__version__", None)
    except Exception:  # a broken Keras is no reason to measure nothing
        return None


def _driver():
    try:
        with open("/proc/driver/nvidia/version") as source:
            found = re.search(r"\s(\d+\.\d+(\.\d+)?)\s", source.read())
    except (IOError, OSError):
        return None
    return found.group(1) if found else None


def _os():
    try:
        with open("/etc/os-release") as source:
            found = re.search(r'^PRETTY_NAME="?([^"\n]+)', source.read(), re.M)
    except (IOError, OSError):
        found = None
    return found.group(1) if found else platform.platform()


def _cpu():
    try:
        with open("/proc/cpuinfo") as source:
            found = re.search(r"^model name\s*:\s*(.+)$", source.read(), re.M)
    except (IOError, OSError):
        found = None
    return found.group(1) if found else platform.machine()


def _output(command):
    try:
        output = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return output.decode("utf-8", "replace").strip()
