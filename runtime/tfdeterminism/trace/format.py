"""The trace file (.tfdt): what it holds and how it is written and read.

A file is a prefix of 16 bytes and then blocks, only ever appended to:

    prefix   8 bytes  MAGIC, then u32 schema version, u32 zero (all integers little-endian)
    block    4 bytes  tag, u32 length of the payload, u32 CRC-32 of tag + length + payload, payload

A file whose last block is not whole (the program was killed, the disk was full) is valid up to
there. Nothing in it is executable: JSON, fixed-size records, zlib.

Blocks by tag:

    HEAD  JSON, once, first: the run. Keys: schema, tensorflow, numpy, python, argv, cwd, level
          ("none" | "weights" | "layers" | "ops"), steps ([first, end] or null), pid, rank, started
          (seconds since 1970), devices (list of names), xla (what was done about it, in words),
          environment (determinism-related variables that are set), probe (how digests are made).
    DEFS  zlib of a JSON list of definitions (below). A later definition of an id replaces an
          earlier one. Every id is defined before its first record.
    RECS  records: EVENT items, one after another, in the order in which they were observed.
    NOTE  JSON {"kind": ..., "text": ...}: something worth saying, in words. Kinds: see notes below.
    CAPT  JSON {"key": id, "occurrence": n, "step": n, "file": name beside the trace}: recorded inputs.
    DONE  JSON, once, last; its absence means that the program was killed. Keys: clean (false when
          an exception or a fault of ours ended recording), exit (status or null), weights (hex
          digest of all final weights, or null), variables ({name: hex digest}), records, steps
          (number of steps seen), error (text or null).

A definition says what a key id means; one output of one op in one place of the program. Keys:

    id         integer, dense from 0
    function   name of the graph function without its uid; "" for eager ops, "session" for session graphs
    trace      how many functions (or session graphs) of this name came before (0 for eager)
    node       node name in the graph; eager: OP@FILE:LINE#N, N-th such op of a step in its thread
    op         op type: "MatMul"; "weight", "loss", "layer", "step" for values that are no op's
    output     output index; -1 for an op that writes a variable and outputs nothing
    dtype, shape   name of the type; list (null for unknown sizes) or null
    device     as far as known at that time
    file, line, stack   where the user's program made it; stack: [[file, line, name], ...], innermost
               first; null / 0 / [] if no user's frame is known
    forward    node name of the op whose gradient this is, or null
    forward_stack   where the user's program made that op, as stack; [] if not known
    inputs     list of key ids: the outputs that feed it. The value of an input is the latest record of
               that key before (within the same block for functions: body records precede)
    variable   label of the variable that is read or written, or null
    kind       "op", "argument" (of a function body), "read", "write", "call" (calls function
               bodies; their records precede its own), "input" (input pipeline), "feed" (from
               Python: placeholders, arrays, numpy_function), "random", "state" (clock, counters),
               "weight", "loss", "layer", "step"
    calls      list of [function, trace] that a "call" runs
    attrs      {"seed": .., "seed2": ..} and the like, where they explain a difference; else {}.
               "deterministic": False, "draws": True of a pipeline whose order is open, that draws without a seed;
               "ahead": True of what feeds a queue in a thread of its own, chance how often;
               "by": "keras" of a value from Python that Keras made
    layer      Keras layer or name scope, or null
    replica    replica number in a distribution strategy, or 0
    thread     name of the thread, "" for the main one
    recorded   false: no record will come (resources, variants); walk through it to its inputs

What aligns two runs: ``key_of(definition)``; then the occurrence. A record of kind "write" carries
digest 0: it only says that the variable was written then, from its inputs.
"""

import io
import json
import os
import struct
import zlib

import numpy

MAGIC = b"\x89TFDT\r\n\x1a"
SCHEMA = 1
EXTENSION = ".tfdt"
EVENT = numpy.dtype([("digest", "<u8"),      # of the value's bytes and their number
                     ("key", "<u4"),         # id of its definition
                     ("step", "<u4"),        # training step, from 0
                     ("occurrence", "<u4"),  # how many records of this key came before in the run
                     ("shape", "<u4")])      # CRC-32 of the shape, 0 if not known

_PREFIX = struct.Struct("<8sII")
_BLOCK = struct.Struct("<4sII")
_BLOCK_LIMIT = 64 << 20
_RECORDS_LIMIT = (1 << 20) // EVENT.itemsize  # a block of at most 1 MiB


class BadTrace(Exception):
    """Not a trace that this version can read. cause, advice: one line each."""

    def __init__(self, cause, advice):
        Exception.__init__(self, "{}: {}".format(cause, advice))
        self.cause = cause
        self.advice = advice


def key_of(definition):
    """What names the same output in another run; hashable."""
    return (definition["thread"], definition["replica"], definition["function"], definition["trace"],
            definition["node"], definition["output"], definition["op"])


class Writer(object):
    """Appends blocks to a new file. OSError from any call: the file stays valid up to the last whole block."""

    def __init__(self, path, header):
        self.path = path
        self.size = 0
        self.records = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        self._append(_PREFIX.pack(MAGIC, SCHEMA, 0))
        self._block(b"HEAD", _json(dict(header, schema=SCHEMA)))

    def define(self, definitions):
        """definitions: dicts as above."""
        if definitions:
            self._block(b"DEFS", zlib.compress(_json(definitions), 6))

    def events(self, records):
        """records: array of EVENT."""
        for start in range(0, len(records), _RECORDS_LIMIT):
            part = records[start:start + _RECORDS_LIMIT]
            self._block(b"RECS", part.tobytes())
            self.records += len(part)

    def note(self, kind, text):
        self._block(b"NOTE", _json({"kind": kind, "text": text}))

    def capture(self, key, occurrence, step, name):
        self._block(b"CAPT", _json({"key": key, "occurrence": occurrence, "step": step, "file": name}))

    def end(self, **fields):
        """The last block."""
        self._block(b"DONE", _json(dict(fields, records=self.records)))

    def close(self):
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _block(self, tag, payload):
        head = struct.pack("<4sI", tag, len(payload))
        crc = zlib.crc32(payload, zlib.crc32(head)) & 0xffffffff
        self._append(head + struct.pack("<I", crc) + payload)

    def _append(self, data):
        view = memoryview(data)
        while len(view):  # a signal or a nearly full disk may cut a write short
            written = os.write(self._file, view)
            self.size += written
            view = view[written:]


def _json(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")


class Reader(object):
    """One pass over a file in bounded memory.

    header: the HEAD block. ``for kind, value in reader`` yields ("definitions", list), ("records",
    array of EVENT), ("note", dict), ("capture", dict), ("end", dict), in file order. After the
    pass: complete (a DONE block was read), damage (None, or words and offset where it stops being
    readable). Raises BadTrace for a file that is no trace, newer, or without a whole header.
    """

    def __init__(self, path):
        self.path = path
        self.complete = False
        self.damage = None
        self._defined = 0
        try:
            self._file = io.open(path, "rb", buffering=1 << 18)
            self._size = os.fstat(self._file.fileno()).st_size
        except (IOError, OSError) as error:
            raise BadTrace("{} cannot be read: {}".format(path, error.strerror),
                           "name a file that `trace run --out` wrote")
        self._prefix()
        first = self._next()
        if first is None or first[0] != b"HEAD":
            raise BadTrace("{} ends before its header".format(path), "record it again: the program was killed at once")
        self.header = self._parsed(first[1], dict)
        if self.header is None:
            raise BadTrace("{} has an unreadable header".format(path), "record it again")

    def __iter__(self):
        for tag, payload in iter(self._next, None):
            if tag == b"RECS":
                value = self._records(payload)
            elif tag == b"DEFS":
                value = self._definitions(payload)
            elif tag in _JSON_BLOCKS:
                value = self._parsed(payload, dict)
            else:
                continue  # of a later minor revision: nothing we need
            if value is None:
                return
            if tag == b"DONE":
                self.complete = True
            yield _NAMES[tag], value

    def close(self):
        self._file.close()

    def _prefix(self):
        data = self._file.read(_PREFIX.size)
        if not MAGIC.startswith(data[:len(MAGIC)]) or not data:
            raise BadTrace("{} is not a trace".format(self.path), "name a .tfdt file that `trace run --out` wrote")
        if len(data) < _PREFIX.size:
            raise BadTrace("{} ends before its header".format(self.path),
                           "record it again: the program was killed at once")
        version = _PREFIX.unpack(data)[1]
        if version > SCHEMA:
            raise BadTrace("{} has schema version {}, this reads up to {}".format(self.path, version, SCHEMA),
                           "read it with the tfdeterminism that wrote it, or a newer one")
        if version < SCHEMA:
            raise BadTrace("{} has schema version {}, this reads {}".format(self.path, version, SCHEMA),
                           "record it again")

    def _next(self):
        """(tag, payload) of the next whole block, or None at the end or at the first damage."""
        if self.damage:
            return None
        offset = self._file.tell()
        head = self._file.read(_BLOCK.size)
        if not head:
            return None
        if len(head) < _BLOCK.size:
            return self._stop("cut off", offset)
        tag, length, crc = _BLOCK.unpack(head)
        if length > self._size - offset - _BLOCK.size and tag in _NAMES and length <= _BLOCK_LIMIT:
            return self._stop("cut off", offset)
        if length > _BLOCK_LIMIT or length > self._size - offset - _BLOCK.size:
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
            value = json.loads(payload.decode("utf-8"))
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
        if found is None or not all(_sound(one, self._defined + number) for number, one in enumerate(found)):
            return self._stop("damaged", self._file.tell())
        self._defined = max([self._defined] + [one["id"] + 1 for one in found])
        return found

    def _records(self, payload):
        if len(payload) % EVENT.itemsize:
            return self._stop("damaged", self._file.tell())
        records = numpy.frombuffer(payload, EVENT)
        if len(records) and records["key"].max() >= self._defined:
            return self._stop("damaged", self._file.tell())
        return records


_JSON_BLOCKS = (b"NOTE", b"CAPT", b"DONE")
_NAMES = {b"HEAD": "header", b"DEFS": "definitions", b"RECS": "records", b"NOTE": "note", b"CAPT": "capture",
          b"DONE": "end"}
_FIELDS = {"id": int, "function": str, "trace": int, "node": str, "op": str, "output": int, "dtype": str,
           "device": str, "line": int, "stack": list, "forward_stack": list, "inputs": list, "kind": str,
           "calls": list, "attrs": dict, "replica": int, "thread": str, "recorded": bool}


def _sound(definition, limit):
    """Is it a definition whose id follows those before? limit: the highest id that it may have."""
    return (isinstance(definition, dict) and isinstance(definition.get("id"), int) and 0 <= definition["id"] <= limit
            and all(isinstance(definition.get(name), kind) for name, kind in _FIELDS.items())
            and all(isinstance(one, int) for one in definition["inputs"]))


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
    """The whole file; 24 bytes of memory a record. Raises BadTrace."""
    reader = Reader(path)
    definitions, notes, captures, end = {}, [], [], None
    records = numpy.empty(reader._size // EVENT.itemsize, EVENT)  # untouched pages cost nothing
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
            else:
                end = value
    finally:
        reader.close()
    ordered = [definitions[number] for number in range(len(definitions))]
    return Trace(reader.header, ordered, records[:count], notes, captures, end, reader.damage)


def definition(id, op, node, **fields):
    """A definition with its defaults filled in."""
    made = dict(id=id, op=op, node=node, function="", trace=0, output=0, dtype="", shape=None, device="", file=None,
                line=0, stack=[], forward=None, forward_stack=[], inputs=[], variable=None, kind="op", calls=[],
                attrs={}, layer=None, replica=0, thread="", recorded=True)
    unknown = set(fields) - set(made)
    if unknown:
        raise TypeError("no such field: {}".format(", ".join(sorted(unknown))))
    made.update(fields)
    return made


def trace_files(folder):
    """The trace files of a folder by rank name: {"0": path, ...}; a file is taken for itself."""
    if os.path.isfile(folder):
        return {"0": folder}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise BadTrace("{} cannot be read: {}".format(folder, error.strerror), "name the folder given to --out")
    found = {name[len("trace-"):-len(EXTENSION)]: os.path.join(folder, name) for name in names
             if name.startswith("trace-") and name.endswith(EXTENSION)}
    if not found:
        raise BadTrace("{} holds no trace".format(folder), "record one: python -m tfdeterminism.trace run --out "
                       "{} -- train.py".format(folder))
    return found
