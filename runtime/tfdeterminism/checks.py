"""What would defeat determinism although every switch is on: starting too late, XLA, auto-tuning turned off."""

import gc
import importlib
import os
import re


def started():
    """What TensorFlow has done already that no switch can change any more: sentences.

    Seen are the eager runtime, sessions that still exist, and ops in the default graph.  A session
    that was closed and thrown away leaves no trace.  Starts nothing, and creates no graph.
    """
    found = []
    if getattr(_eager_context(), "_context_handle", None) is not None:
        found.append("TensorFlow's eager runtime is running: ops may have run")
    sessions = _living_sessions()
    if sessions:
        found.append("{} tf.Session object(s) exist: ops may have run".format(sessions))
    nodes = _nodes_of_default_graph()
    if nodes:
        found.append("the default graph holds {} node(s): they were built by the original functions".format(nodes))
    return found


def xla():
    """How XLA's JIT compilation was switched on, or None.  What tf.function(jit_compile=True) asks is not seen."""
    flags = re.findall(r"--tf_xla_auto_jit=([\w-]+)", os.environ.get("TF_XLA_FLAGS", ""))
    if flags and flags[-1] not in ("0", "-1"):
        return "TF_XLA_FLAGS holds --tf_xla_auto_jit={}".format(flags[-1])
    # tf.config.optimizer.get_jit() would look for devices, after which CUDA_VISIBLE_DEVICES is read no more.
    if getattr(_eager_context(), "_optimizer_jit", None):
        return "tf.config.optimizer.set_jit() has switched it on"
    return None


def autotune():
    """The value of TF_CUDNN_USE_AUTOTUNE, or None where it is unset, as it should be."""
    return os.environ.get("TF_CUDNN_USE_AUTOTUNE")


def hash_seed():
    """PYTHONHASHSEED as it was when Python started, or None: set later it changes nothing here."""
    try:
        with open("/proc/self/environ", "rb") as source:
            entries = source.read().split(b"\0")
    except (IOError, OSError):  # not Linux: what the program itself has set looks the same there
        value = os.environ.get("PYTHONHASHSEED")
    else:
        found = [entry.split(b"=", 1)[1] for entry in entries if entry.startswith(b"PYTHONHASHSEED=")]
        value = found[0].decode("ascii", "replace") if found else None
    return value if value not in ("", "random") else None


def _eager_context():
    """TensorFlow's context of eager execution, or None where nothing has asked for it yet."""
    return getattr(importlib.import_module("tensorflow.python.eager.context"), "_context", None)


def _living_sessions():
    base = importlib.import_module("tensorflow.python.client.session").BaseSession
    return sum(issubclass(type(thing), base) for thing in gc.get_objects())  # isinstance would wake lazy modules


def _nodes_of_default_graph():
    stack = importlib.import_module("tensorflow.python.framework.ops")._default_graph_stack
    graph = getattr(stack, "_global_default_graph", None)
    return len(graph.get_operations()) if graph is not None else 0
