"""The content of a trace file (.tfdt), which writer.py writes and reader.py reads.

A file is a prefix of 16 bytes and then blocks, only ever appended to:

    prefix   8 bytes  MAGIC, then u32 schema version, u32 zero (all integers little-endian)
    block    4 bytes  tag, u32 length of the payload, u32 CRC-32 of tag + length + payload, payload

A file whose last block is not whole (the program was killed, the disk was full) is valid up to
there. Nothing in it is executable: JSON, fixed-size records, zlib.

Blocks by tag:

    HEAD  JSON, once, first: the run. Keys: schema, framework (the module that the program imports, such as
          "torch", or null), version (of the framework, or null), numpy, python, argv, cwd,
          level (whose values have digests: "none" | "weights" | "layers" | "unordered", the ops whose order the
          graph leaves open | "ops"), steps ([first, end] or null), pid,
          rank (the process's name), parent (the name of the process that started it, or null), started
          (seconds since 1970), devices (list of names), xla (a text: whether XLA is switched off),
          environment (determinism-related variables that are set), digest (how digests are computed).
    DEFS  zlib of a JSON list of definitions (below). A later definition of an id replaces an
          earlier one. Every id is defined before its first record.
    RECS  records: items of RECORD_DTYPE, in the order in which they were observed.
    NOTE  JSON {"kind": ..., "text": ...}: a remark for the user. Kinds: "xla", "capture", "values".
    SRCS  JSON {file: {line: text}}: lines of the user's program around those that definitions name.
    VALS  values of a tensor at a step: see tensor_values.py.
    TIME  JSON {"at": seconds since 1970}: when the recording of the following records began, by which
          processes of one run are put in order. At most every 20 ms.
    CAPT  JSON {"key": id, "occurrence": n, "step": n, "file": name beside the trace}: recorded inputs.
    DONE  JSON, once, last; its absence means that the program was killed. Keys: clean (false if
          an exception, or an error of the tool, ended recording), exit (status or null), weights (hex
          digest of all final weights, or null), variables ({name: hex digest}), records, steps
          (number of steps seen), error (text or null).

A definition says what a key id means; one output of one op in one place of the program. Keys:

    id         integer, dense from 0
    function   name of the graph function without its uid; "" for eager ops, "session" for session graphs
    trace      how many functions (or session graphs) of this name came before (0 for eager)
    node       node name in the graph; eager: OP@FILE:LINE#N, N-th such op of a step in its thread
    op         op type: "MatMul"; "weight", "loss", "layer" for values that are not an op's output
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
               Python: placeholders, arrays, numpy_function), "random", "stateful" (clock, counters),
               "weight", "loss", "layer"
    calls      list of [function, trace] that a "call" runs, or the Python function that a numpy_function runs
    traits     list of the properties of every op of this type, see traits.py
    attrs      properties of this op, by the names in traits.py; {} if none may explain a difference
    layer      Keras layer or name scope, or null
    replica    replica number in a distribution strategy, or 0
    thread     name of the thread, "" for the main one
    recorded   false: it has no records (resources, variants); its inputs stand in for it

Two runs are aligned by ``key_of(definition)``, then by occurrence. A record of kind "write" has
digest 0: it only says that the variable was written then, from its inputs.
"""

import os
import struct

import numpy

MAGIC = b"\x89TFDT\r\n\x1a"
SCHEMA = 2
PYTHON = "Python"  # the op of a value that Python made, and no op
EXTENSION = ".tfdt"
RECORD_DTYPE = numpy.dtype([("digest", "<u8"),      # of the value's bytes and their number
                     ("key", "<u4"),         # id of its definition
                     ("step", "<u4"),        # training step, from 0
                     ("occurrence", "<u4"),  # how many records of this key came before in the run
                     ("shape", "<u4")])      # CRC-32 of the shape, 0 if not known

FILE_PREFIX = struct.Struct("<8sII")
BLOCK_HEADER = struct.Struct("<4sII")


class TraceFormatError(Exception):
    """A file that is not a trace which this version can read. cause, advice: one line each."""

    def __init__(self, cause, advice):
        Exception.__init__(self, "{}: {}".format(cause, advice))
        self.cause = cause
        self.advice = advice


def key_of(definition):
    """Return the key of an output, hashable, which is the same in another run."""
    return (definition["thread"], definition["replica"], definition["function"], definition["trace"],
            definition["node"], definition["output"], definition["op"])


def definition(id, op, node, **fields):
    """Return a definition with its defaults filled in."""
    complete = dict(id=id, op=op, node=node, function="", trace=0, output=0, dtype="", shape=None, device="", file=None,
                    line=0, stack=[], forward=None, forward_stack=[], inputs=[], variable=None, kind="op", calls=[],
                    traits=[], attrs={}, layer=None, replica=0, thread="", recorded=True)
    unknown = set(fields) - set(complete)
    if unknown:
        raise TypeError("no such field: {}".format(", ".join(sorted(unknown))))
    complete.update(fields)
    return complete


def trace_files(folder):
    """Return the trace files of a folder by process name: {"0": path, ...}; a file is its own only entry."""
    if os.path.isfile(folder):
        return {"0": folder}
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise TraceFormatError("{} cannot be read: {}".format(folder, error.strerror), "name the folder given to --out")
    files = {name[len("trace-"):-len(EXTENSION)]: os.path.join(folder, name) for name in names
             if name.startswith("trace-") and name.endswith(EXTENSION)}
    if not files:
        raise TraceFormatError("{} holds no trace".format(folder),
                               "record one: python -m tfdeterminism.trace run --out {} -- train.py".format(folder))
    return files
