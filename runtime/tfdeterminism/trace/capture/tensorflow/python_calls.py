"""Python functions that a graph calls (py_function, py_func, numpy_function), and what runs eagerly inside.

From TF 2.1 on TensorFlow calls them in threads of its own, where no callback is, and their arguments are new tensors
that no op has made: without this a variable written there would change by itself, and an argument come from Python.
"""

import contextlib
import itertools
import sys

from .. import user_frames
from . import internals as tf

_NEAR = 8  # frames between what is called and the op that calls, ours among them
_KNOWN_BEFORE = 48  # of what was recorded in a call: how much of it a value from Python may have been made of


class PythonCall(object):
    """One call. identity: (function, trace number), as what calls it has it; stack: where that was made."""

    def __init__(self, identity, stack):
        self.identity, self.stack = identity, stack
        self._arguments, self._made, self._nth = [], [], {}

    def next_occurrence(self, *name):
        """How often this name was asked for in this call: calls may overlap, and each counts for itself."""
        self._nth[name] = self._nth.get(name, 0) + 1
        return self._nth[name] - 1

    def add_input(self, key):
        self._arguments.append(key)

    def add_outputs(self, keys):
        self._made = (self._made + keys)[-_KNOWN_BEFORE:]

    def inputs_so_far(self):
        """What a value from Python may have been made of: `.numpy()` is not seen."""
        return self._arguments + self._made


class PythonCalls(object):
    """eager: the eager.EagerRecorder that records what runs in them."""

    def __init__(self, recorder, keys, eager, wrappers):
        self._recorder, self._keys, self._eager = recorder, keys, eager
        if recorder.level == "ops":
            wrappers.wrap(tf.script_ops.FuncRegistry, "__call__", self._call)

    def _call(self, original, registry, token, device, args):
        body = self._body(token)
        if body is None:  # of an input pipeline, whose calls belong to no step; or one of ours
            with self._recorder.unrecorded():
                return original(registry, token, device, args)
        with self._inside(body):
            self._eager.arguments(body, args)
            return original(registry, token, device, args)

    def _body(self, token):
        """None for what is not recorded."""
        if not self._recorder.active or getattr(self._recorder.local, "busy", False):
            return None
        known = self._keys.python_function(token)
        if known is None and _by_an_eager_op():
            known = self._keys.python_function_called_eagerly(token, user_frames.stack_of_caller())
        return PythonCall(*known) if known else None

    @contextlib.contextmanager
    def _inside(self, body):
        local = self._recorder.local
        before, local.body = getattr(local, "body", None), body
        try:
            with self._eager.install_in_thread():
                yield
        finally:
            local.body = before


def _by_an_eager_op():
    """Does an eager op call, and not what runs a graph in this thread, such as an iterator or one of ours?"""
    near = itertools.islice(user_frames.outer_frames(sys._getframe(1)), _NEAR)
    return any(frame.f_code.co_filename.endswith("gen_script_ops.py") for frame in near)
