"""The recorder of tensor values in the trace: of named ops, losses and weights (see schema/tensor_values.py).

Limits apply to the elements of a tensor, the steps, and the bytes of the whole file. Beyond them a part is stored that
depends on shapes and steps alone, so that two runs store the same part.
"""

import math
import os

import numpy

from .. import errors, untrusted
from ..schema import tensor_values as form
from . import pool_tasks

OP_LIMIT = 1 << 16      # elements of a named op's output
SERIES_LIMIT = 1 << 10  # elements of a loss or a weight, which are recorded in many steps
TOTAL_LIMIT = 1 << 26   # bytes in all
_DENSE = 32             # the first steps, all of which are recorded; the interval then doubles with each doubling

_NAMES = ("function", "trace", "node")


def parse(text):
    """Return the list of wanted outputs. Raises UsageError.

    text: JSON with a list of outputs or the output of `diff --json`, or the name of a file with either.
    """
    try:
        is_file = os.path.exists(text)
        outputs = untrusted.parse_json(untrusted.read_regular(text) if is_file else text)
        if isinstance(outputs, dict):
            outputs = outputs["path"]
        return [_wanted_output(output, order) for order, output in enumerate(outputs)]
    except (IOError, OSError, ValueError, OverflowError, KeyError, TypeError, AttributeError):
        shown = text[:80] if text[:1] in ("[", "{") else text  # the name of a file is never cut
        raise errors.UsageError("--record-values {}: no list of tensors".format(shown),
                              "give what `diff --json` printed, or []: losses and weights alone")


def _wanted_output(output, order):
    """Return an output with its position in the list, and its role: the culprit, on the path to the loss, or a loss."""
    role = output.get("role", "path")
    return {"function": str(output.get("function", "")), "trace": int(output.get("trace", 0)),
            "node": str(output["node"]), "output": int(output.get("output", 0)), "order": order,
            "role": role if role in form.ROLES else "path"}


class ValueRecorder(object):
    """The values of one process. Thread-safe.

    wanted: the result of parse(); lock: the recorder's, which is held at the end of a step, when values are recorded.
    """

    def __init__(self, recorder, wanted, lock):
        self._recorder = recorder
        self._wanted_outputs = {}
        for entry in wanted:
            self._wanted_outputs.setdefault(tuple(entry[name] for name in _NAMES), []).append(entry)
        self._left = TOTAL_LIMIT
        self._counts, self._names = {}, {}
        self._lock = lock
        self._last = None  # the step whose weights were kept last

    def entries_for(self, function, trace, node):
        """Return the wanted entries of an op, one for each output."""
        return self._wanted_outputs.get((function, trace, node), [])

    def loss_name(self, *location):
        """Return a name for a loss; the first one of a program is "loss".

        location: the number of an eager loss; (function, trace, node, output) of a graph's.
        """
        # A loss of a graph is made in whatever task runs first, so that its name must not contain the task.
        if pool_tasks.current_task() is not None and len(location) == 1:
            return pool_tasks.name_in_task("loss#{}".format(*location))
        number = self._names.setdefault(location, len(self._names))
        return "loss#{}".format(number) if number else "loss"

    def is_due(self):
        """Return whether values are recorded in this step."""
        steps = self._recorder.steps
        number = steps.number - (steps.window[0] if steps.window else 0)
        interval = 1
        while number >= _DENSE * interval:
            interval *= 2
        return self._recorder.is_recording_step() and number % interval == 0

    def record_op(self, entry, key, array):
        """Record an output of a named op. key: id of its definition."""
        if self.is_due():
            self._keep({"kind": "op", "name": entry["node"], "key": key, "order": entry["order"],
                        "role": entry["role"]}, array, OP_LIMIT, self._recorder.steps.number)

    def record_loss(self, name, array):
        if self.is_due():
            self._series("loss", name, array, self._recorder.steps.number)

    def record_weights(self, arrays):
        """Record weights at the end of a step. arrays: {label: array}."""
        if self.is_due():
            self._weights(arrays, self._recorder.steps.number)

    def record_final_weights(self, arrays):
        """Record the weights after the last step, if they were not recorded."""
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
        stored = numpy.ascontiguousarray(flat[::stride])
        nan, inf, first_index = form.count_nonfinite(flat, dtype)
        name = (head["kind"], head["key"], head["name"])
        previous = self._counts.get(name, (step, -1))
        occurrence = previous[1] + 1 if previous[0] == step else 0
        self._counts[name] = step, occurrence
        self._left -= stored.nbytes
        self._recorder.write_value(form.pack(dict(
            head, step=step, occurrence=occurrence, dtype=dtype, shape=[int(size) for size in array.shape],
            stride=stride, nan=nan, inf=inf, first=first_index), stored))
        if self._left <= 0:
            self._recorder.note("values", "values are kept up to step {} only: they fill {} MiB".format(
                step, TOTAL_LIMIT >> 20))


def _stride(size, limit):
    """Return the smallest stride that keeps at most `limit` elements and has no common factor with the size.

    Such a stride meets all rows and columns.
    """
    stride = -(-size // limit) or 1
    while stride > 1 and math.gcd(stride, size) > 1:
        stride += 1
    return stride
