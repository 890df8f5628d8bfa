"""A builder of traces, for tests of their readers."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import synthetic

from tfdeterminism.trace import backends
from tfdeterminism.trace.schema import format as trace_format
from tfdeterminism.trace.schema import tensor_values
from tfdeterminism.trace.schema.writer import Writer

HEADER: dict[str, Any] = {**synthetic.HEADER, "numpy": "2.0", "digest": "by hand"}


class TraceBuilder:
    """Writes one trace: ops are defined, then recorded in the order of the calls.

    A value may be anything: its repr is what is digested.
    """

    def __init__(self, path: Path, **header: Any) -> None:
        self.path = path
        self._writer = Writer(str(path), {**HEADER, **header})
        self._seen: Counter[int] = Counter()
        self._next = 0

    def op(self, node: str, op: str = "MatMul", inputs: tuple[int, ...] = (), **fields: Any) -> int:
        """Define an op; return its key. node: its name; inputs: keys of ops; fields: other fields of a definition."""
        fields.setdefault("function", "train_step")
        fields.setdefault("device", "/device:CPU:0")
        fields.setdefault("file", "train.py")
        fields.setdefault("line", 10 + self._next)
        backend = backends.find("torch" if "." in op else "tensorflow")
        fields["attrs"] = {**backend.attributes(op), **fields.get("attrs", {})}
        fields.setdefault("traits", sorted(backend.traits(op)))
        definition = trace_format.definition(self._next, op, node, inputs=list(inputs), **fields)
        self._writer.define([definition])
        self._next += 1
        return definition["id"]

    def eager(self, location: str, op: str = "MatMul", inputs: tuple[int, ...] = (), **fields: Any) -> int:
        """Define an op of an eager call; location: FILE:LINE#N, the N-th op of the line."""
        return self.op(f"{op}@{location}", op, inputs, function="", **fields)

    def record(self, key: int, value: object, step: int = 0) -> None:
        """Record one output of the op."""
        row = numpy.zeros(1, trace_format.RECORD_DTYPE)
        row["digest"], row["key"], row["step"] = zlib.crc32(repr(value).encode()), key, step
        row["occurrence"] = self._seen[key]
        self._seen[key] += 1
        self._writer.events(row)

    def write(self, key: int, step: int = 0) -> None:
        """Record that a variable was written, without a digest."""
        row = numpy.zeros(1, trace_format.RECORD_DTYPE)
        row["key"], row["step"], row["occurrence"] = key, step, self._seen[key]
        self._seen[key] += 1
        self._writer.events(row)

    def value(self, array: Any, step: int = 0, **head: Any) -> None:
        """Write a value: of the op `key` if given, else of the loss, or as `kind` and `name` say.

        head: other fields of the value's head, as tfdeterminism.trace.schema.tensor_values explains them.
        """
        dtype = head.pop("dtype", array.dtype.name)
        flat = tensor_values.to_stored(array, dtype)
        nan, inf, first = tensor_values.count_nonfinite(flat, dtype)
        definition = {"kind": "op" if "key" in head else "loss", "name": "loss", "key": None, "order": 0,
                      "role": "path", "step": step, "occurrence": 0, "dtype": dtype, "shape": list(array.shape),
                      "stride": 1, "nan": nan, "inf": inf, "first": first, **head}  # fmt: skip
        self._writer.value(tensor_values.pack(definition, flat[:: definition["stride"]]))

    def source(self, lines: dict[int, str], file: str = "train.py") -> None:
        """Write lines of the program into the trace."""
        self._writer.source({file: {str(number): line for number, line in lines.items()}})

    def end(self, **fields: Any) -> Path:
        """Write the end of a run that ended well, with these fields changed; return the path."""
        self._writer.end(**{"clean": True, "exit": 0, "weights": "00", "variables": {}, "steps": 1, "error": None,
                            **fields})  # fmt: skip
        return self.close_as_killed()

    def close_as_killed(self) -> Path:
        """Close the file as a killed run leaves it, without an end; return the path."""
        self._writer.close()
        return self.path
