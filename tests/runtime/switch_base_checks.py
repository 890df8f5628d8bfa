"""Shared by the checks of the switch, enable_determinism(): each check runs in a forked process."""

import json
import os
import sys
import traceback
import warnings

import tensorflow as tf

import tfdeterminism
from tfdeterminism import preconditions, recipes

# EXPECTED: what this version of TensorFlow is to do: {"environment": {...}, "teod": bool, "patch": bool}.
EXPECTED = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
VARIABLES = ("TF_CUDNN_DETERMINISTIC", "TF_DETERMINISTIC_OPS", "TF_CUDNN_USE_FRONTEND", "TF_CUDNN_USE_AUTOTUNE")
TF1 = tf.__version__.startswith("1.")
V1 = getattr(tf.compat, "v1", tf)
ALL = []  # the functions that check() decorated


def check(function):
    """Add the function to the checks that main() runs."""
    ALL.append(function)
    return function


def enabled(*arguments):
    """Call enable_determinism(); return (report, classes of this package's warnings)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = tfdeterminism.enable_determinism(*arguments)
    own_warnings = [warning for warning in caught if issubclass(warning.category, tfdeterminism.DeterminismWarning)]
    assert all(warning.filename == __file__ for warning in own_warnings), "a warning points into the package"
    return report, [warning.category.__name__ for warning in own_warnings]


def variables():
    """Return the variables of VARIABLES that are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def attributes():
    """Return the current value of every name in every module of TensorFlow and Keras."""
    values = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("tensorflow", "tensorflow_core", "keras"):
            values.update(((name, key), value) for key, value in list(getattr(module, "__dict__", {}).items()))
    return values


def changed(before, after):
    """Return the names whose functions were replaced between two results of attributes()."""
    return sorted(key for key in before if key in after and callable(before[key]) and before[key] is not after[key])


def keys_of_patches():
    """Return the keys of the patches that this version should get."""
    version = tuple(int(part) for part in tf.version.VERSION.split(".")[:2])
    return [patch.key for patch in recipes.patches_for("stock", version)]  # stock: not one of NVIDIA's images


def in_child(function):
    """Run a function in a fork; return (whether it passed, what it printed)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        text, status = "", 0
        try:
            function()
        except BaseException:
            text, status = traceback.format_exc(), 1
        os.write(writer, text.encode("utf-8", "replace")[:60000])
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as output:
        text = output.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    return status == 0, text


def main():
    """Run each check in a fork; print its result."""
    for name in VARIABLES:
        os.environ.pop(name, None)
    assert tf.keras.layers.Dense  # loads what is loaded lazily, once for all checks
    assert not preconditions.runtime_started()
    for function in ALL:
        passed, output = in_child(function)
        print("{} {}\n{}".format("ok" if passed else "FAILED", function.__name__, output), end="")
