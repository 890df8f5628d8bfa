"""Reads a trace file: a stranger's data, of which nothing is believed that is not looked at."""

import os
import zlib
from typing import TYPE_CHECKING

import numpy

from .. import untrusted
from . import tensor_values, traits
from .format import BLOCK_HEADER, FILE_PREFIX, MAGIC, RECORD_DTYPE, SCHEMA, TraceFormatError

if TYPE_CHECKING:  # for type comments alone
    from typing import Any  # noqa: F401

_BLOCK_LIMIT = 64 << 20
_JSON_BLOCKS = (b"NOTE", b"CAPT", b"SRCS", b"TIME", b"DONE")
_NAMES = {b"HEAD": "header", b"DEFS": "definitions", b"RECS": "records", b"NOTE": "note", b"CAPT": "capture",
          b"SRCS": "source", b"VALS": "value", b"TIME": "time", b"DONE": "end"}
_FIELDS = {"id": int, "function": str, "trace": int, "node": str, "op": str, "output": int, "dtype": str,
           "device": str, "line": int, "stack": list, "forward_stack": list, "inputs": list, "kind": str,
           "calls": list, "traits": list, "attrs": dict, "replica": int, "thread": str, "recorded": bool}
_WORD, _WHOLE, _NUMBER = (str, type(None)), (int, type(None)), (int, float, type(None))
_VALIDATORS = {b"HEAD": {"framework": _WORD, "version": _WORD, "numpy": _WORD, "python": _WORD, "argv": [str],
                   "probe": _WORD, "cwd": _WORD, "level": _WORD,
                   "steps": [int], "devices": [str], "xla": _WORD, "environment": {}, "rank": _WORD, "pid": _WHOLE,
                   "parent": _WORD, "started": _NUMBER},
         b"NOTE": {"kind": _WORD, "text": _WORD},
         b"TIME": {"at": (int, float)},
         b"CAPT": {"key": _WHOLE, "occurrence": _WHOLE, "step": _WHOLE, "file": _WORD},
         b"DONE": {"clean": (bool, type(None)), "exit": _WHOLE, "weights": _WORD, "variables": {}, "records": _WHOLE,
                   "steps": _WHOLE, "error": _WORD}}  # type: dict[bytes, dict[str, Any]]


class Reader(object):
    """One pass over a file in bounded memory.

    header: the HEAD block. ``for kind, value in reader`` yields ("definitions", list), ("records",
    array of EVENT), ("note", dict), ("capture", dict), ("source", dict), ("value", value_recorder.TensorSample),
    ("time", dict), ("end", dict), in file order. After the
    pass: complete (a DONE block was read), damage (None, or words and offset where it stops being
    readable). Raises TraceFormatError for a file that is no trace, newer, or without a whole header.
    """

    def __init__(self, path):
        self.path = path
        self.complete = False
        self.damage = None
        self._defined = 0
        try:
            self._file = untrusted.open_regular(path, 1 << 18)
            self._size = os.fstat(self._file.fileno()).st_size
        except (IOError, OSError) as error:
            raise TraceFormatError("{} cannot be read: {}".format(path, error.strerror),
                           "name a file that `trace run --out` wrote")
        self._prefix()
        first = self._next()
        if first is None or first[0] != b"HEAD":
            raise TraceFormatError("{} ends before its header".format(path),
                                   "record it again: the program was killed at once")
        self.header = self._parsed(first[1], dict)
        if self.header is None:
            raise TraceFormatError("{} has an unreadable header".format(path), "record it again")
        if not _is_valid_block(b"HEAD", self.header):
            raise TraceFormatError("{} has a header that makes no sense".format(path), "record it again")

    def __iter__(self):
        for tag, payload in iter(self._next, None):
            if tag == b"RECS":
                value = self._records(payload)
            elif tag == b"DEFS":
                value = self._definitions(payload)
            elif tag == b"VALS":
                value = self._value(payload)
            elif tag in _JSON_BLOCKS:
                value = self._parsed(payload, dict)
                if value is not None and not _is_valid_block(tag, value):
                    value = self._stop("damaged", self._file.tell())
            else:
                continue  # of a later minor revision: nothing we need
            if value is None:
                return
            if tag == b"DONE":
                self.complete = True
            yield _NAMES[tag], value

    def close(self):
        self._file.close()

    def position(self):
        """How many bytes were read."""
        return self._file.tell()

    def _prefix(self):
        data = self._file.read(FILE_PREFIX.size)
        if not MAGIC.startswith(data[:len(MAGIC)]) or not data:
            raise TraceFormatError("{} is not a trace".format(self.path),
                                   "name a .tfdt file that `trace run --out` wrote")
        if len(data) < FILE_PREFIX.size:
            raise TraceFormatError("{} ends before its header".format(self.path),
                           "record it again: the program was killed at once")
        version = FILE_PREFIX.unpack(data)[1]
        if version > SCHEMA:
            raise TraceFormatError("{} has schema version {}, this reads up to {}".format(self.path, version, SCHEMA),
                           "read it with the tfdeterminism that wrote it, or a newer one")
        if version < SCHEMA:
            raise TraceFormatError("{} has schema version {}, this reads {}".format(self.path, version, SCHEMA),
                           "record it again")

    def _next(self):
        """(tag, payload) of the next whole block, or None at the end or at the first damage."""
        if self.damage:
            return None
        offset = self._file.tell()
        head = self._file.read(BLOCK_HEADER.size)
        if not head:
            return None
        if len(head) < BLOCK_HEADER.size:
            return self._stop("cut off", offset)
        tag, length, crc = BLOCK_HEADER.unpack(head)
        if length > self._size - offset - BLOCK_HEADER.size and tag in _NAMES and length <= _BLOCK_LIMIT:
            return self._stop("cut off", offset)
        if length > _BLOCK_LIMIT or length > self._size - offset - BLOCK_HEADER.size:
            return self._stop("damaged", offset)
        payload = self._file.read(length)
        if zlib.crc32(payload, zlib.crc32(head[:8])) & 0xffffffff != crc:
            return self._stop("damaged", offset)
        return tag, payload

    def _stop(self, how, offset):
        self.damage = "{} at byte {}".format(how, offset)
        return None

    def _parsed(self, payload, kind):
        try:
            value = untrusted.parse_json(payload)
        except ValueError:
            value = None
        return value if isinstance(value, kind) else self._stop("damaged", self._file.tell())

    def _definitions(self, payload):
        unpack = zlib.decompressobj()
        try:
            text = unpack.decompress(payload, _BLOCK_LIMIT)
        except zlib.error:
            return self._stop("damaged", self._file.tell())
        found = self._parsed(text, list)
        if found is None or not all(_is_valid_definition(one, self._defined + number)
                                    for number, one in enumerate(found)):
            return self._stop("damaged", self._file.tell())
        self._defined = max([self._defined] + [one["id"] + 1 for one in found])
        return found

    def _value(self, payload):
        value = tensor_values.unpack(payload)
        if value is None or (value.head["key"] or 0) >= max(self._defined, 1):
            return self._stop("damaged", self._file.tell())
        return value

    def _records(self, payload):
        if len(payload) % RECORD_DTYPE.itemsize:
            return self._stop("damaged", self._file.tell())
        records = numpy.frombuffer(payload, RECORD_DTYPE)
        if len(records) and records["key"].max() >= self._defined:
            return self._stop("damaged", self._file.tell())
        return records


def definitions_until(path, end):
    """("definitions", list) and ("source", dict) of the first `end` bytes of a file that may still grow."""
    reader = Reader(path)
    try:
        for kind, value in reader:
            if reader.position() > end:
                break
            if kind in ("definitions", "source"):
                yield kind, value
    finally:
        reader.close()


def _is_valid_block(tag, value):
    # type: (bytes, Any) -> bool
    """Is each field of a block of the type that a recorder writes?"""
    if tag == b"SRCS":
        return all(isinstance(lines, dict) and all(number.isdigit() and isinstance(text, str)
                                                   for number, text in lines.items()) for lines in value.values())
    return all(_has_type(value.get(name), wanted) for name, wanted in _VALIDATORS[tag].items()) \
        and (tag != b"HEAD" or len(value.get("steps") or (0, 0)) == 2)


def _has_type(value, wanted):
    """wanted: a type or several; [type] for a list of it, or nothing; {} for an object of words, or nothing."""
    if value is None and isinstance(wanted, (list, dict)):
        return True
    if isinstance(wanted, list):
        return isinstance(value, list) and all(type(one) is wanted[0] for one in value)
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    return isinstance(value, wanted)


def _is_valid_definition(definition, limit):
    """Is it a definition whose id follows those before? limit: the highest id that it may have."""
    return (isinstance(definition, dict) and isinstance(definition.get("id"), int) and 0 <= definition["id"] <= limit
            and all(isinstance(definition.get(name), kind) for name, kind in _FIELDS.items())
            and all(isinstance(one, int) for one in definition["inputs"])
            and traits.are_valid(definition["traits"], definition["attrs"]))


class Trace(object):
    """A whole trace in memory: header, definitions (list by id), records (array of EVENT), notes,
    captures, end (dict or None), damage (None or words)."""

    def __init__(self, header, definitions, records, notes, captures, end, damage):
        self.header = header
        self.definitions = definitions
        self.records = records
        self.notes = notes
        self.captures = captures
        self.end = end
        self.damage = damage


def load(path):
    """The whole file; 24 bytes of memory a record. Raises TraceFormatError."""
    reader = Reader(path)
    definitions, notes, captures, end = {}, [], [], None
    records = numpy.empty(reader._size // RECORD_DTYPE.itemsize, RECORD_DTYPE)  # untouched pages cost nothing
    count = 0
    try:
        for kind, value in reader:
            if kind == "records":
                records[count:count + len(value)] = value
                count += len(value)
            elif kind == "definitions":
                definitions.update((one["id"], one) for one in value)
            elif kind == "note":
                notes.append(value)
            elif kind == "capture":
                captures.append(value)
            elif kind == "end":
                end = value
    finally:
        reader.close()
    ordered = [definitions[number] for number in range(len(definitions))]
    return Trace(reader.header, ordered, records[:count], notes, captures, end, reader.damage)
