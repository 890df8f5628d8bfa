"""Run one op many times on the inputs that a trace kept: python -m tfdeterminism.trace replay FILE.

Prints one line of JSON: {"op", "times", "distinct": [per output], "digests": [per output]}. Exit
code 0 if all runs of all outputs agree, 1 if not, 2 if the file or the op cannot be used.
"""

import io
import json
import zipfile

import numpy

from .. import errors, usage


def main(argv):
    arguments = usage.replay(argv)
    try:
        found = replay(arguments.file, arguments.times)
    except errors.BadUsage as error:
        errors.say(str(error))
        return errors.USAGE
    print(json.dumps(found, sort_keys=True))
    return 1 if max(found["distinct"] or [1]) > 1 else 0


def replay(path, times):
    """How many different results `times` runs of the op gave. Imports TensorFlow. Raises BadUsage."""
    meta, arrays = load(path)
    try:
        from .tensorflow import again
        results = again.run(meta, arrays, times)
    except Exception as error:  # whatever TensorFlow raises for an op that it cannot run alone
        raise errors.BadUsage("{} cannot be run alone: {}".format(meta["op"], str(error).splitlines()[0]),
                              "compare two traces instead")
    return {"op": meta["op"], "times": times, "distinct": [len(set(one)) for one in results],
            "digests": [["{:016x}".format(value) for value in one] for one in results]}


def load(path):
    """(meta, list of arrays, uint8 of raw bytes or lists of strings)."""
    try:
        with numpy.load(path, allow_pickle=False) as kept:
            meta = json.loads(kept["meta"].tobytes().decode("utf-8"))
            arrays = [_array(kept, meta, number) for number in range(len(meta["dtypes"]))]
        return meta, arrays
    except (IOError, OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise errors.BadUsage("{} holds no inputs: {}".format(path, error), "record them with --capture")


def _array(kept, meta, number):
    data, shape = kept["input_{}".format(number)], meta["shapes"][number]
    if meta["dtypes"][number] != "string":
        return data, shape
    stream, sizes = io.BytesIO(data.tobytes()), kept["lengths_{}".format(number)]
    return numpy.array([stream.read(int(size)) for size in sizes], object).reshape(shape), shape
