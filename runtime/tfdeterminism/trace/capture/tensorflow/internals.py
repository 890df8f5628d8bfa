"""The internal modules of TensorFlow that the probes use, for all versions. Import only after TensorFlow."""

import importlib
import re

import numpy
from tensorflow.core.framework.attr_value_pb2 import AttrValue as attr_value
from tensorflow.python.eager import backprop, context, execute, tape
from tensorflow.python.framework import auto_control_deps, constant_op, dtypes, func_graph, function_def_to_graph, ops
from tensorflow.python.ops import (
    array_ops,
    bitwise_ops,
    control_flow_ops,
    gen_array_ops,
    gen_script_ops,
    gen_state_ops,
    math_ops,
    resource_variable_ops,
    script_ops,
    variables,
    while_v2,
)
from tensorflow.python.util import nest, tf_decorator

__all__ = ["array_ops", "attr_value", "auto_control_deps", "backprop", "bitwise_ops", "constant", "constant_op",
           "context", "control_flow_ops", "dtypes", "execute", "func_graph", "function_def_to_graph", "gen_array_ops",
           "gen_script_ops", "gen_state_ops", "math_ops", "nest", "ops", "resource_variable_ops", "script_ops",
           "stop_recording", "tf_decorator", "variables", "while_v2"]

constant = constant_op.constant
VERSION = tuple(int(part) for part in re.findall(r"\d+", importlib.import_module("tensorflow").__version__)[:2])


def optional(name):
    """Return a module that some versions lack, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# Version 2.12 moved this function.
stop_recording = getattr(optional("tensorflow.python.eager.record"), "stop_recording", None) or tape.stop_recording
op_callbacks = optional("tensorflow.python.framework.op_callbacks")
BaseVariable = getattr(resource_variable_ops, "BaseResourceVariable", None) or resource_variable_ops.ResourceVariable


def is_eager(tensor):
    return hasattr(tensor, "_numpy") or hasattr(tensor, "_numpy_internal")


def value(tensor):
    """Return an eager tensor's value as an array, without a copy if it lies on the CPU."""
    return numpy.asarray(tensor._numpy_internal() if hasattr(tensor, "_numpy_internal") else tensor._numpy())


def is_on_cpu(tensor):
    return "CPU" in (tensor.device or "CPU")


def address(tensor):
    """Return the address of an eager tensor's numbers in this process's memory, None without one."""
    if not is_on_cpu(tensor) or tensor.dtype in (dtypes.string, dtypes.resource, dtypes.variant):
        return None
    array = value(tensor)
    return array.__array_interface__["data"][0] if array.nbytes and array.base is not None else None


def is_symbolic(tensor):
    return not is_eager(tensor) and hasattr(tensor, "op") and hasattr(tensor, "value_index")


def shape_list(tensor):
    """Return the static shape: a list with None for unknown sizes, or None."""
    try:
        return tensor.shape.as_list()
    except ValueError:
        return None


def captures(graph):
    """Return (external, internal) pairs of a function's graph."""
    graph_captures = graph.captures
    return list(graph_captures.items()) if hasattr(graph_captures, "items") else list(graph_captures)


def gpus():
    """Return the names of the GPUs that TensorFlow would use, without starting its runtime."""
    config = optional("tensorflow.python.framework.config")
    for name in ("list_physical_devices", "experimental_list_physical_devices"):
        if hasattr(config, name):
            return [device.name for device in getattr(config, name)("GPU")]
    return ["GPU:0"] if optional("tensorflow.python.platform.test").is_built_with_cuda() else []


_cache = {}


def has_gpus():
    """Return whether tensors may lie on a GPU.

    It is called late, because the program may choose its devices after the import.
    """
    if "gpus" not in _cache:
        _cache["gpus"] = bool(gpus())
    return _cache["gpus"]
