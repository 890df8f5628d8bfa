"""The reader of a trace file, which is untrusted input: every field is checked before it is used."""

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
# The types of the fields of a definition, and below of each block; format.py says what each field means.
_FIELDS = {"id": int, "function": str, "trace": int, "node": str, "op": str, "output": int, "dtype": str,
           "device": str, "line": int, "stack": list, "forward_stack": list, "inputs": list, "kind": str,
           "calls": list, "traits": list, "attrs": dict, "replica": int, "thread": str, "recorded": bool}
_TEXT, _INTEGER, _NUMBER = (str, type(None)), (int, type(None)), (int, float, type(None))
_VALIDATORS = {b"HEAD": {"framework": _TEXT, "version": _TEXT, "numpy": _TEXT, "python": _TEXT, "argv": [str],
                         "digest": _TEXT, "cwd": _TEXT, "level": _TEXT, "steps": [int], "devices": [str], "xla": _TEXT,
                         "environment": {}, "rank": _TEXT, "pid": _INTEGER, "parent": _TEXT, "started": _NUMBER},
               b"NOTE": {"kind": _TEXT, "text": _TEXT},
               b"TIME": {"at": (int, float)},
               b"CAPT": {"key": _INTEGER, "occurrence": _INTEGER, "step": _INTEGER, "file": _TEXT},
               b"DONE": {"clean": (bool, type(None)), "exit": _INTEGER, "weights": _TEXT, "variables": {},
                         "records": _INTEGER, "steps": _INTEGER, "error": _TEXT}}  # type: dict[bytes, dict[str, Any]]


class Reader(object):
    """One pass over a file in bounded memory.

    header: the HEAD block. ``for kind, value in reader`` yields ("definitions", list), ("records", array of
    RECORD_DTYPE), ("note", dict), ("capture", dict), ("source", dict), ("value", tensor_values.TensorSample), ("time",
    dict), ("end", dict), in file order. After the pass: complete (whether a DONE block was read), damage (None, or a
    text with the offset where the file stops being readable). Raises TraceFormatError for a file that is not a trace,
    has another schema version, or lacks a whole header.
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
        self._read_prefix()
        block = self._next_block()
        if block is None or block[0] != b"HEAD":
            raise TraceFormatError("{} ends before its header".format(path),
                                   "record it again: the program was killed at once")
        self.header = self._parse(block[1], dict)
        if self.header is None:
            raise TraceFormatError("{} has an unreadable header".format(path), "record it again")
        if not _is_valid_block(b"HEAD", self.header):
            raise TraceFormatError("{} has a header that makes no sense".format(path), "record it again")

    def __iter__(self):
        for tag, payload in iter(self._next_block, None):
            if tag == b"RECS":
                value = self._parse_records(payload)
            elif tag == b"DEFS":
                value = self._parse_definitions(payload)
            elif tag == b"VALS":
                value = self._parse_value(payload)
            elif tag in _JSON_BLOCKS:
                value = self._parse(payload, dict)
                if value is not None and not _is_valid_block(tag, value):
                    value = self._stop("damaged", self._file.tell())
            else:
                continue  # a block of a later minor revision, which is not needed
            if value is None:
                return
            if tag == b"DONE":
                self.complete = True
            yield _NAMES[tag], value

    def close(self):
        self._file.close()

    def position(self):
        """Return the number of bytes that were read."""
        return self._file.tell()

    def _read_prefix(self):
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

    def _next_block(self):
        """Return (tag, payload) of the next whole block, or None at the end or at the first damage."""
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

    def _stop(self, reason, offset):
        self.damage = "{} at byte {}".format(reason, offset)
        return None

    def _parse(self, payload, expected_type):
        try:
            value = untrusted.parse_json(payload)
        except ValueError:
            value = None
        return value if isinstance(value, expected_type) else self._stop("damaged", self._file.tell())

    def _parse_definitions(self, payload):
        decompressor = zlib.decompressobj()
        try:
            text = decompressor.decompress(payload, _BLOCK_LIMIT)
        except zlib.error:
            return self._stop("damaged", self._file.tell())
        definitions = self._parse(text, list)
        if definitions is None or not all(_is_valid_definition(definition, self._defined + number)
                                          for number, definition in enumerate(definitions)):
            return self._stop("damaged", self._file.tell())
        self._defined = max([self._defined] + [definition["id"] + 1 for definition in definitions])
        return definitions

    def _parse_value(self, payload):
        value = tensor_values.unpack(payload)
        if value is None or (value.head["key"] or 0) >= max(self._defined, 1):
            return self._stop("damaged", self._file.tell())
        return value

    def _parse_records(self, payload):
        if len(payload) % RECORD_DTYPE.itemsize:
            return self._stop("damaged", self._file.tell())
        records = numpy.frombuffer(payload, RECORD_DTYPE)
        if len(records) and records["key"].max() >= self._defined:
            return self._stop("damaged", self._file.tell())
        return records


def definitions_until(path, end):
    """Yield ("definitions", list) and ("source", dict) of the first `end` bytes of a file that may grow."""
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
    """Return whether each field of a block has the type that a recorder writes."""
    if tag == b"SRCS":
        return all(isinstance(lines, dict) and all(number.isdigit() and isinstance(text, str)
                                                   for number, text in lines.items()) for lines in value.values())
    return all(_has_type(value.get(name), expected) for name, expected in _VALIDATORS[tag].items()) \
        and (tag != b"HEAD" or len(value.get("steps") or (0, 0)) == 2)


def _has_type(value, expected):
    """Return whether a value has the expected type.

    expected: a type or several; [type] for a list of it, or None; {} for a dict of strings, or None.
    """
    if value is None and isinstance(expected, (list, dict)):
        return True
    if isinstance(expected, list):
        return isinstance(value, list) and all(type(item) is expected[0] for item in value)
    if isinstance(expected, dict):
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    return isinstance(value, expected)


def _is_valid_definition(definition, limit):
    """Return whether it is a definition whose id follows those before. limit: the highest valid id."""
    return (isinstance(definition, dict) and isinstance(definition.get("id"), int) and 0 <= definition["id"] <= limit
            and all(isinstance(definition.get(name), field_type) for name, field_type in _FIELDS.items())
            and all(isinstance(number, int) for number in definition["inputs"])
            and traits.are_valid(definition["traits"], definition["attrs"]))


class Trace(object):
    """A whole trace in memory.

    header; definitions: list by id; records: array of RECORD_DTYPE; notes; captures; end: dict or None; damage: None or
    a text.
    """

    def __init__(self, header, definitions, records, notes, captures, end, damage):
        self.header = header
        self.definitions = definitions
        self.records = records
        self.notes = notes
        self.captures = captures
        self.end = end
        self.damage = damage


def load(path):
    """Return the Trace of a file; it needs 24 bytes of memory for each record. Raises TraceFormatError."""
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
                definitions.update((definition["id"], definition) for definition in value)
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
