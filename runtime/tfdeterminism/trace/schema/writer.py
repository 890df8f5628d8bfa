"""Writes a trace file, block by block."""

import json
import os
import struct
import zlib

from .format import FILE_PREFIX, MAGIC, RECORD_DTYPE, SCHEMA
from .reader import definitions_until

_RECORDS_LIMIT = (1 << 20) // RECORD_DTYPE.itemsize  # a block of at most 1 MiB


class Writer(object):
    """Appends blocks to a new file. OSError from any call: the file stays valid up to the last whole block."""

    def __init__(self, path, header):
        self.path = path
        self.records = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._append(FILE_PREFIX.pack(MAGIC, SCHEMA, 0))
        self._block(b"HEAD", _json(dict(header, schema=SCHEMA)))

    def define(self, definitions):
        """definitions: dicts as format.definition() makes them."""
        if definitions:
            self._block(b"DEFS", zlib.compress(_json(definitions), 6))

    def events(self, records):
        """records: array of EVENT."""
        for start in range(0, len(records), _RECORDS_LIMIT):
            part = records[start:start + _RECORDS_LIMIT]
            self._block(b"RECS", part.tobytes())
            self.records += len(part)

    def source(self, lines):
        """lines: {file: {line: text}}."""
        if lines:
            self._block(b"SRCS", _json(lines))

    def time(self, at):
        """at: seconds since 1970, when what follows began to be recorded."""
        self._block(b"TIME", _json({"at": at}))

    def definitions(self):
        """A function: what this file has defined so far, as [(method, arguments), ...] for another Writer."""
        size = os.fstat(self._file).st_size
        return lambda: [({"definitions": "define"}.get(kind, kind), (value,))
                        for kind, value in definitions_until(self.path, size)]

    def note(self, kind, text):
        self._block(b"NOTE", _json({"kind": kind, "text": text}))

    def value(self, payload):
        """payload: as tensor_values.pack() makes it."""
        self._block(b"VALS", payload)

    def capture(self, key, occurrence, step, name):
        self._block(b"CAPT", _json({"key": key, "occurrence": occurrence, "step": step, "file": name}))

    def end(self, **fields):
        """The last block."""
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
            written = os.write(self._file, view)
            view = view[written:]


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")
