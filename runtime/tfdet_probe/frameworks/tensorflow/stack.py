"""The versions and the devices that TensorFlow reports."""

import re

import tensorflow as tf


def describe():
    """The versions {version, keras, cuda, cudnn}; None if not reported."""
    build = _build_info()
    return {"version": tf.__version__, "keras": _keras_version(), "cuda": build.get("cuda_version"),
            "cudnn": build.get("cudnn_version")}


def visible(placement):
    """The devices [{name, compute_capability}] of a type (CPU, GPU).  Starts TensorFlow's runtime."""
    from tensorflow.python.client import device_lib
    descriptions = [d.physical_device_desc for d in device_lib.list_local_devices() if d.device_type == placement]
    return [{"name": _match(r"name: ([^,]+)", text),
             "compute_capability": _match(r"compute capability: ([\d.]+)", text)} for text in descriptions]


def _match(pattern, text):
    match = re.search(pattern, text)
    return match.group(1).strip() if match else None


def _build_info():
    try:
        return dict(tf.sysconfig.get_build_info())
    except AttributeError:  # before 2.3
        return {}


def _keras_version():
    try:
        return getattr(tf.keras, "__version__", None)
    except Exception:  # with a broken Keras the case still counts
        return None
