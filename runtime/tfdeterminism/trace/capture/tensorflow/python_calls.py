"""The probes for Python functions that a graph calls (py_function, py_func, numpy_function), which run eager ops.

From TF 2.1 on TensorFlow calls them in its own threads, which have no callback, and their arguments are new tensors
that no op made. Without this module a variable written there would seem to change by itself, and an argument would seem
to come from Python.
"""

import contextlib
import itertools
import sys

from .. import user_frames
from . import internals as tf

_MAX_FRAMES = 8  # frames between the function and the op that calls it, those of this tool among them
_MAX_OUTPUTS = 48  # latest outputs in a call of which a Python value may have been made


class PythonCall(object):
    """One call of a Python function.

    identity: (the function's name, a number that distinguishes the ops that call it); stack: the user's frames where
    that op was created.
    """

    def __init__(self, identity, stack):
        self.identity, self.stack = identity, stack
        self._arguments, self._outputs, self._nth = [], [], {}

    def next_occurrence(self, *name):
        """Return how often this was called with the name in this call, from 0; calls may overlap."""
        self._nth[name] = self._nth.get(name, 0) + 1
        return self._nth[name] - 1

    def add_input(self, key):
        self._arguments.append(key)

    def add_outputs(self, keys):
        self._outputs = (self._outputs + keys)[-_MAX_OUTPUTS:]

    def inputs_so_far(self):
        """Return the keys of which a Python value may have been made: `.numpy()` is not observed."""
        return self._arguments + self._outputs


class PythonCalls(object):
    """The wrapper around the calls. eager: the eager.EagerRecorder that records the ops in them.

    keys: a graph_keys.GraphOpIds, which knows Python functions by TensorFlow's tokens.
    """

    def __init__(self, recorder, keys, eager, wrappers):
        self._recorder, self._keys, self._eager = recorder, keys, eager
        if recorder.level == "ops":
            wrappers.wrap(tf.script_ops.FuncRegistry, "__call__", self._call)

    def _call(self, original, registry, token, device, args):
        python_call = self._find_call(token)
        if python_call is None:  # a call of an input pipeline, which belongs to no step, or of a probe
            with self._recorder.unrecorded():
                return original(registry, token, device, args)
        with self._as_current(python_call):
            self._eager.record_arguments(python_call, args)
            return original(registry, token, device, args)

    def _find_call(self, token):
        """Return the PythonCall of a token, or None if it is not recorded."""
        if not self._recorder.active or getattr(self._recorder.local, "busy", False):
            return None
        function = self._keys.python_function(token)
        if function is None and _is_called_by_eager_op():
            function = self._keys.python_function_called_eagerly(token, user_frames.stack_of_caller())
        return PythonCall(*function) if function else None

    @contextlib.contextmanager
    def _as_current(self, python_call):
        local = self._recorder.local
        previous, local.python_call = getattr(local, "python_call", None), python_call
        try:
            with self._eager.install_in_thread():
                yield
        finally:
            local.python_call = previous


def _is_called_by_eager_op():
    """Return whether an eager op makes the call, and not code that runs a graph in this thread."""
    frames = itertools.islice(user_frames.outer_frames(sys._getframe(1)), _MAX_FRAMES)
    return any(frame.f_code.co_filename.endswith("gen_script_ops.py") for frame in frames)
