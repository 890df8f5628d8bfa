"""Keeps the inputs of one op, once, so that it can be run again on them: see the replay module.

The file is an .npz without pickled objects: input_0, input_1, ... are the bytes of each input
(uint8), lengths_0, ... the lengths of the strings of an input of text, and "meta" is JSON: the op,
its dtypes, shapes, device and attributes.
"""

import io
import json
import os

import numpy

from .. import errors, untrusted

LIMIT = 1 << 30  # bytes of all inputs together
_NAMES = ("function", "trace", "node")


def parse(text):
    """{"function", "trace", "node", "occurrence", "rank"} from JSON on a command line. Raises UsageError."""
    try:
        wanted = untrusted.parse_json(text)
        return {"function": str(wanted.get("function", "")), "trace": int(wanted.get("trace", 0)),
                "node": str(wanted["node"]), "occurrence": int(wanted.get("occurrence", 0)),
                "rank": wanted.get("rank")}
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError):
        raise errors.UsageError("--capture-inputs {}: not an op".format(text),
                              'give JSON: {"function": "", "trace": 0, "node": "...", "occurrence": 0}')


class InputCapture(object):
    """wanted: as parse() gives it."""

    def __init__(self, recorder, wanted):
        self._recorder = recorder
        self._wanted = wanted
        self._seen = 0
        self.done = False

    def is_wanted(self, function, trace, node):
        return not self.done and [self._wanted[name] for name in _NAMES] == [function, trace, node]

    def on_op_run(self, key, meta, values):
        """The wanted op has run once more. meta: what is kept of it as JSON, with dtypes and device of its inputs;
        values: those as arrays, None for what has none."""
        self._seen += 1
        if self._seen != self._wanted["occurrence"] + 1:
            return
        self.done = True
        size = sum(getattr(one, "nbytes", 0) for one in values)
        if size > LIMIT or any(one is None for one in values):
            self._recorder.note("capture", "the inputs of {} cannot be kept: {}".format(
                self._wanted["node"], "they are larger than 1 GiB" if size > LIMIT else "one of them is a resource"))
            return
        self._write(key, dict({"shapes": [list(value.shape) for value in values]}, **meta), values)

    def _write(self, key, meta, values):
        name = "capture-{}.npz".format(key)
        arrays = {"input_{}".format(number): as_bytes(value) for number, value in enumerate(values)}
        arrays.update(("lengths_{}".format(number), string_lengths(value)) for number, value in enumerate(values)
                      if value.dtype.kind in "OSU")
        arrays["meta"] = numpy.frombuffer(json.dumps(meta).encode("utf-8"), numpy.uint8)
        try:
            buffer = io.BytesIO()
            numpy.savez(buffer, **arrays)
            with open(os.path.join(self._recorder.folder, name), "wb") as target:
                target.write(buffer.getvalue())
        except (IOError, OSError) as error:
            errors.log("the inputs of {} cannot be kept: {}".format(self._wanted["node"], error.strerror))
            return
        self._recorder.note_capture(key, self._wanted["occurrence"], self._recorder.steps.number, name)


def as_bytes(value):
    """The bytes of an array as uint8."""
    if value.dtype.kind in "OSU":
        return numpy.frombuffer(b"".join(_items(value)), numpy.uint8)
    return numpy.frombuffer(numpy.ascontiguousarray(value).tobytes(), numpy.uint8)


def string_lengths(value):
    """The lengths of an array's strings."""
    return numpy.array([len(one) for one in _items(value)], numpy.int64)


def _items(value):
    return [one if isinstance(one, bytes) else str(one).encode("utf-8") for one in value.reshape(-1).tolist()]
