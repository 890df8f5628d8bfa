"""The writer of a trace file, which appends block by block."""

import json
import os
import struct
import zlib

from .format import FILE_PREFIX, MAGIC, RECORD_DTYPE, SCHEMA
from .reader import definitions_until

_RECORDS_LIMIT = (1 << 20) // RECORD_DTYPE.itemsize  # a block of at most 1 MiB


class Writer(object):
    """A new file, to which blocks are appended.

    After an OSError from any method the file is valid up to the last whole block.
    """

    def __init__(self, path, header):
        self.path = path
        self.records = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._append(FILE_PREFIX.pack(MAGIC, SCHEMA, 0))
        self._block(b"HEAD", _json(dict(header, schema=SCHEMA)))

    def define(self, definitions):
        """Write definitions: dicts that format.definition() made."""
        if definitions:
            self._block(b"DEFS", zlib.compress(_json(definitions), 6))

    def events(self, records):
        """Write records: an array of RECORD_DTYPE."""
        for start in range(0, len(records), _RECORDS_LIMIT):
            block = records[start:start + _RECORDS_LIMIT]
            self._block(b"RECS", block.tobytes())
            self.records += len(block)

    def source(self, lines):
        """Write source lines: {file: {line: text}}."""
        if lines:
            self._block(b"SRCS", _json(lines))

    def time(self, seconds):
        """Write the time, in seconds since 1970, at which the recording of the following records began."""
        self._block(b"TIME", _json({"at": seconds}))

    def definitions(self):
        """Return a function that returns what another file has to begin with: the definitions and source lines so far.

        They are calls, as [(name of a method of Writer, its arguments), ...].
        """
        size = os.fstat(self._file).st_size
        return lambda: [({"definitions": "define"}.get(kind, kind), (value,))
                        for kind, value in definitions_until(self.path, size)]

    def note(self, kind, text):
        self._block(b"NOTE", _json({"kind": kind, "text": text}))

    def value(self, payload):
        """Write a payload that tensor_values.pack() made."""
        self._block(b"VALS", payload)

    def capture(self, key, occurrence, step, name):
        """Write that the inputs of this execution of an op are in the file `name` beside the trace."""
        self._block(b"CAPT", _json({"key": key, "occurrence": occurrence, "step": step, "file": name}))

    def end(self, **fields):
        """Write the last block."""
        self._block(b"DONE", _json(dict(fields, records=self.records)))

    def close(self):
        if self._file is not None:
            os.close(self._file)
            self._file = None  # type: ignore[assignment]  # nothing is written any more

    def _block(self, tag, payload):
        head = struct.pack("<4sI", tag, len(payload))
        crc = zlib.crc32(payload, zlib.crc32(head)) & 0xffffffff
        self._append(head + struct.pack("<I", crc) + payload)

    def _append(self, data):
        view = memoryview(data)
        while len(view):  # a signal or a nearly full disk may cut a write short
            count = os.write(self._file, view)
            view = view[count:]


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")
