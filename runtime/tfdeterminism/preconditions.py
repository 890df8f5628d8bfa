"""Conditions that defeat determinism although it is enabled: a started runtime, XLA, auto-tuning turned off."""

import gc
import importlib
import os
import re


def runtime_started():
    """Return what TensorFlow has done already, so that enabling determinism comes too late for it.

    It detects the eager runtime, existing sessions, and ops in the default graph, but no session that was closed and
    deleted.  It starts nothing and creates no graph.

    Returns:
        A list of sentences; empty if nothing has started.
    """
    sentences = []
    if getattr(_eager_context(), "_context_handle", None) is not None:
        sentences.append("TensorFlow's eager runtime is running: ops may have run")
    sessions = _living_sessions()
    if sessions:
        sentences.append("{} tf.Session object(s) exist: ops may have run".format(sessions))
    nodes = _nodes_of_default_graph()
    if nodes:
        sentences.append("the default graph holds {} node(s): they were built by the original functions".format(nodes))
    return sentences


def xla_enabled_by():
    """Return what enabled XLA's JIT compilation, as text, or None.

    tf.function(jit_compile=True) is not detected.
    """
    flags = re.findall(r"--tf_xla_auto_jit=([\w-]+)", os.environ.get("TF_XLA_FLAGS", ""))
    if flags and flags[-1] not in ("0", "-1"):
        return "TF_XLA_FLAGS holds --tf_xla_auto_jit={}".format(flags[-1])
    # Not tf.config.optimizer.get_jit(): it lists the devices, after which CUDA_VISIBLE_DEVICES has no effect.
    if getattr(_eager_context(), "_optimizer_jit", None):
        return "tf.config.optimizer.set_jit() has switched it on"
    return None


def autotune_override():
    """Return the value of TF_CUDNN_USE_AUTOTUNE, or None if it is unset, as it should be."""
    return os.environ.get("TF_CUDNN_USE_AUTOTUNE")


def hash_seed():
    """Return PYTHONHASHSEED at the start of Python, or None; a later change has no effect in this process."""
    try:
        with open("/proc/self/environ", "rb") as source:
            entries = source.read().split(b"\0")
    except (IOError, OSError):  # not Linux: it may have been set later
        value = os.environ.get("PYTHONHASHSEED")
    else:
        values = [entry.split(b"=", 1)[1] for entry in entries if entry.startswith(b"PYTHONHASHSEED=")]
        value = values[0].decode("ascii", "replace") if values else None
    return value if value not in ("", "random") else None


def _eager_context():
    """Return TensorFlow's context of eager execution, or None if it was not used yet."""
    return getattr(importlib.import_module("tensorflow.python.eager.context"), "_context", None)


def _living_sessions():
    base = importlib.import_module("tensorflow.python.client.session").BaseSession
    return sum(issubclass(type(instance), base) for instance in gc.get_objects())  # isinstance would wake lazy modules


def _nodes_of_default_graph():
    stack = importlib.import_module("tensorflow.python.framework.ops")._default_graph_stack
    graph = getattr(stack, "_global_default_graph", None)
    return len(graph.get_operations()) if graph is not None else 0
