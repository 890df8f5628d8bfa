"""Keeps values of some tensors in the trace: of named ops, of losses, of weights; see schema/tensor_values.py.

What this may take is bounded: elements of a tensor, steps, bytes of the whole file. Beyond that a part is kept, and
which part depends on shapes and steps alone: two runs keep the same.
"""

import math
import os

import numpy

from .. import errors, untrusted
from ..schema import tensor_values as form
from . import pool_tasks

OP_LIMIT = 1 << 16      # elements of a named op's output
SERIES_LIMIT = 1 << 10  # elements of a loss or a weight, which are kept again and again
TOTAL_LIMIT = 1 << 26   # bytes in all
_DENSE = 32             # so many steps are kept each, and later half as many of each doubling

_NAMES = ("function", "trace", "node")


def parse(text):
    """The list of wanted outputs, of JSON: a list of them, what `diff --json` printed, or the name of a file that holds
    either. Raises UsageError."""
    try:
        if os.path.exists(text):
            with untrusted.open_regular(text) as source:
                text = source.read().decode("utf-8")
        wanted = untrusted.parse_json(text)
        if isinstance(wanted, dict):
            wanted = wanted["path"]
        return [_wanted(one, order) for order, one in enumerate(wanted)]
    except (IOError, OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError):
        raise errors.UsageError("--record-values {}: no list of tensors".format(text[:80]),
                              "give what `diff --json` printed, or []: losses and weights alone")


def _wanted(one, order):
    role = one.get("role", "path")
    return {"function": str(one.get("function", "")), "trace": int(one.get("trace", 0)), "node": str(one["node"]),
            "output": int(one.get("output", 0)), "order": order, "role": role if role in form.ROLES else "path"}


class ValueRecorder(object):
    """wanted: as parse() gives it; lock: the recorder's, as what ends a step holds it and keeps values. Thread-safe."""

    def __init__(self, recorder, wanted, lock):
        self._recorder = recorder
        self._wanted = {}
        for one in wanted:
            self._wanted.setdefault(tuple(one[name] for name in _NAMES), []).append(one)
        self._left = TOTAL_LIMIT
        self._counts, self._names = {}, {}
        self._lock = lock
        self._last = None  # the step whose weights were kept last

    def entries_for(self, function, trace, node):
        """What is wanted of an op: a list of entries, one for each output."""
        return self._wanted.get((function, trace, node), [])

    def loss_name(self, *where):
        """A name for a loss: the first of a program is "loss"."""
        if pool_tasks.current_task() is not None and len(where) == 1:  # a graph's may be made in whatever task is first
            return pool_tasks.name_in_task("loss#{}".format(*where))
        number = self._names.setdefault(where, len(self._names))
        return "loss#{}".format(number) if number else "loss"

    def is_due(self):
        """Is this a step of which values are kept?"""
        steps = self._recorder.steps
        number = steps.number - (steps.window[0] if steps.window else 0)
        every = 1
        while number >= _DENSE * every:
            every *= 2
        return self._recorder.is_recording_step() and number % every == 0

    def record_op(self, entry, key, array):
        """An output of a named op. key: id of its definition."""
        if self.is_due():
            self._keep({"kind": "op", "name": entry["node"], "key": key, "order": entry["order"],
                        "role": entry["role"]}, array, OP_LIMIT, self._recorder.steps.number)

    def record_loss(self, name, array):
        if self.is_due():
            self._series("loss", name, array, self._recorder.steps.number)

    def record_weights(self, arrays):
        """arrays: {label: array}, at the end of a step."""
        if self.is_due():
            self._weights(arrays, self._recorder.steps.number)

    def record_final_weights(self, arrays):
        """What the last step left, if its weights were not kept."""
        steps = self._recorder.steps
        if steps.window is None and steps.number and self._last != steps.number - 1:
            self._weights(arrays, steps.number - 1)

    def _weights(self, arrays, step):
        self._last = step
        for label in sorted(arrays):
            self._series("weight", label, arrays[label], step)

    def _series(self, kind, name, array, step):
        self._keep({"kind": kind, "name": name, "key": None, "order": 0, "role": "path"}, array, SERIES_LIMIT, step)

    def _keep(self, head, array, limit, step):
        array = numpy.asarray(array)
        if form.is_supported(array.dtype.name) and array.ndim <= form.MAX_DIMENSIONS:
            with self._lock:
                self._write(head, array, limit, step)

    def _write(self, head, array, limit, step):
        dtype = array.dtype.name
        if self._left <= 0:
            return
        flat = form.to_stored(array, dtype)
        stride = _stride(flat.size, limit)
        kept = numpy.ascontiguousarray(flat[::stride])
        nan, inf, first = form.count_nonfinite(flat, dtype)
        name = (head["kind"], head["key"], head["name"])
        before = self._counts.get(name, (step, -1))
        occurrence = before[1] + 1 if before[0] == step else 0
        self._counts[name] = step, occurrence
        self._left -= kept.nbytes
        self._recorder.write_value(form.pack(dict(
            head, step=step, occurrence=occurrence, dtype=dtype, shape=[int(size) for size in array.shape],
            stride=stride, nan=nan, inf=inf, first=first), kept))
        if self._left <= 0:
            self._recorder.note("values", "values are kept up to step {} only: they fill {} MiB".format(
                step, TOTAL_LIMIT >> 20))


def _stride(size, limit):
    """The least by which at most `limit` elements are left, and all rows and columns are met."""
    stride = -(-size // limit) or 1
    while stride > 1 and math.gcd(stride, size) > 1:
        stride += 1
    return stride
