"""The capture of the inputs of one op, so that replay.py can run it again on them.

The file is an .npz without pickled objects: input_0, input_1, ... are the bytes of each input (uint8); lengths_0, ...
the lengths of the strings of a string input; "meta" is JSON: the op, its dtypes, shapes, device and attributes.
"""

import io
import json
import os

import numpy

from .. import errors, untrusted

LIMIT = 1 << 30  # bytes of all inputs together
_NAMES = ("function", "trace", "node")


def parse(text):
    """Return {"function", "trace", "node", "occurrence", "rank"} from JSON on the command line. Raises UsageError.

    function, trace: the graph function that the op belongs to, and how many of that name were traced before; "" and 0
    outside of functions. node: the op's name; occurrence: its run, from 0; rank: the process's name; None: the first.
    """
    try:
        fields = untrusted.parse_json(text)
        return {"function": str(fields.get("function", "")), "trace": int(fields.get("trace", 0)),
                "node": str(fields["node"]), "occurrence": int(fields.get("occurrence", 0)),
                "rank": fields.get("rank")}
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError):
        raise errors.UsageError("--capture-inputs {}: not an op".format(text),
                              'give JSON: {"function": "", "trace": 0, "node": "...", "occurrence": 0}')


class InputCapture(object):
    """The capture of one op. wanted: the result of parse()."""

    def __init__(self, recorder, wanted):
        self._recorder = recorder
        self._wanted = wanted
        self._seen = 0
        self.done = False

    def is_wanted(self, function, trace, node):
        return not self.done and [self._wanted[name] for name in _NAMES] == [function, trace, node]

    def on_op_run(self, key, meta, values):
        """Count a run of the op, and write its inputs if this is the wanted one.

        meta: JSON data to store, with dtypes and device of the inputs; values: the inputs as arrays, None for one that
        has no value.
        """
        self._seen += 1
        if self._seen != self._wanted["occurrence"] + 1:
            return
        self.done = True
        size = sum(getattr(value, "nbytes", 0) for value in values)
        if size > LIMIT or any(value is None for value in values):
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
    """Return the bytes of an array as uint8."""
    if value.dtype.kind in "OSU":
        return numpy.frombuffer(b"".join(_items(value)), numpy.uint8)
    return numpy.frombuffer(numpy.ascontiguousarray(value).tobytes(), numpy.uint8)


def string_lengths(value):
    """Return the lengths of an array's strings."""
    return numpy.array([len(text) for text in _items(value)], numpy.int64)


def _items(value):
    return [item if isinstance(item, bytes) else str(item).encode("utf-8") for item in value.reshape(-1).tolist()]
