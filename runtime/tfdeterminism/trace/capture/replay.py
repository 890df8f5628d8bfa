"""The command that runs one op many times on its recorded inputs: python -m tfdeterminism.trace replay FILE.

It prints one line of JSON: {"op", "times", "distinct": [per output], "digests": [per output]}. The exit code is 0 if
all runs of all outputs agree, 1 if not, 2 if the file or the op cannot be used.
"""

import io
import json
import os

import numpy

from .. import backends, command_line, errors, untrusted
from ..schema import format as trace_format
from ..schema import reader


def main(argv):
    arguments = command_line.replay(argv)
    try:
        result = replay(arguments.file, arguments.repeats)
    except (errors.UsageError, trace_format.TraceFormatError) as error:
        errors.log(str(error))
        return errors.EXIT_USAGE
    print(json.dumps(result, sort_keys=True))
    return 1 if max(result["distinct"] or [1]) > 1 else 0


def replay(path, times):
    """Run the op `times` times and return how many distinct results it gave. Raises UsageError."""
    meta, arrays = load(path)
    if not _is_named(path, meta["op"]):
        raise errors.UsageError("{}: no trace beside it names it with this op".format(path),
                              "leave it in the folder in which --capture-inputs wrote it")
    try:
        backend = backends.find(meta.get("framework", ""))
        if not backend.is_pure(meta["op"]):
            raise errors.UsageError("{} is not run alone: it may do more than compute numbers from numbers".format(
                meta["op"]), "compare two traces instead")
        results = backend.replay(meta, arrays, times)
    except errors.UsageError:
        raise
    except Exception as error:  # the type depends on the framework
        raise errors.UsageError("{} cannot be run alone: {}".format(meta["op"], str(error).splitlines()[0]),
                              "compare two traces instead")
    return {"op": meta["op"], "times": times, "distinct": [len(set(digests)) for digests in results],
            "digests": [["{:016x}".format(value) for value in digests] for digests in results]}


def load(path):
    """Return (meta, [(array, shape) of each input]). meta: JSON of the op; array: uint8 of raw bytes, or strings."""
    try:
        with untrusted.open_regular(path) as source, numpy.load(source, allow_pickle=False) as archive:
            meta = untrusted.parse_json(archive["meta"].tobytes())
            if not isinstance(meta["op"], str) or meta.get("framework") not in backends.entries():
                raise ValueError("it names no op of a framework that can be traced")
            arrays = [_array(archive, meta, number) for number in range(len(meta["dtypes"]))]
        return meta, arrays
    except Exception as error:  # zipfile, zlib and NumPy raise different types for a damaged archive
        raise errors.UsageError("{} holds no inputs: {}".format(path, error), "record them with --capture-inputs")


def _is_named(path, op):
    """Return whether a trace in the file's folder names the file as the inputs of such an op."""
    folder, name = os.path.split(os.path.abspath(path))
    for trace in trace_format.trace_files(folder).values():
        contents = reader.load(trace)
        if any(capture.get("file") == name and 0 <= (capture.get("key") or 0) < len(contents.definitions)
               and contents.definitions[capture.get("key") or 0]["op"] == op for capture in contents.captures):
            return True
    return False


def _array(archive, meta, number):
    data, shape = archive["input_{}".format(number)], meta["shapes"][number]
    if meta["dtypes"][number] != "string":
        return data, shape
    stream, sizes = io.BytesIO(data.tobytes()), archive["lengths_{}".format(number)]
    return numpy.array([stream.read(int(size)) for size in sizes], object).reshape(shape), shape
