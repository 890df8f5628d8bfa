"""Run one op many times on the inputs that a trace kept: python -m tfdeterminism.trace replay FILE.

Prints one line of JSON: {"op", "times", "distinct": [per output], "digests": [per output]}. Exit
code 0 if all runs of all outputs agree, 1 if not, 2 if the file or the op cannot be used.
"""

import io
import json
import zipfile

import numpy

from . import digest, errors, usage


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
        results = (_in_graph if "node_def" in meta else _eagerly)(meta, arrays, times)
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


def _typed(dtypes, meta, arrays):
    """Arrays in TensorFlow's types."""
    return [data if name == "string" else data.view(getattr(dtypes, name).as_numpy_dtype).reshape(shape)
            for name, (data, shape) in zip(meta["dtypes"], arrays)]


def _in_graph(meta, arrays, times):
    import tensorflow

    from .backends import internals as tf
    node = tensorflow.compat.v1.NodeDef.FromString(bytes.fromhex(meta["node_def"]))
    for name in ("_class", "_XlaMustCompile"):
        if name in node.attr:
            del node.attr[name]
    graph = tf.ops.Graph()
    with graph.as_default():
        holders = [tensorflow.compat.v1.placeholder(getattr(tf.dtypes, name), shape)
                   for name, shape in zip(meta["dtypes"], meta["shapes"])]
        del node.input[:]
        node.input.extend(holder.name for holder in holders)
        node.name = "replayed"
        graph_def = graph.as_graph_def()
        graph_def.node.extend([node])
    again = tf.ops.Graph()
    with again.as_default():
        tensorflow.import_graph_def(graph_def, name="")
        op = again.get_operation_by_name("replayed")
        feeds = dict(zip([holder.name for holder in holders], _typed(tf.dtypes, meta, arrays)))
        config = tensorflow.compat.v1.ConfigProto(allow_soft_placement=True)
        with tensorflow.compat.v1.Session(graph=again, config=config) as session:
            runs = [session.run(list(op.outputs), feeds) for _ in range(times)]
    return [[digest.of_array(value) for value in output] for output in zip(*runs)]


def _eagerly(meta, arrays, times):
    import tensorflow
    if hasattr(tensorflow.compat.v1, "enable_eager_execution"):
        tensorflow.compat.v1.enable_eager_execution()
    from .backends import internals as tf
    attrs = tuple(_unplain(one) for one in meta["eager_attrs"])
    inputs = [tf.constant(value) if name != "string" else tf.constant(value.tolist(), tf.dtypes.string)
              for name, value in zip(meta["dtypes"], _typed(tf.dtypes, meta, arrays))]
    results = []
    for _ in range(times):
        outputs = tf.execute.quick_execute(meta["op"], meta["outputs"], inputs, attrs, tf.context.context())
        results.append([digest.of_array(one.numpy()) for one in outputs])
    return list(zip(*results))


def _unplain(value):
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"])
    return [_unplain(one) for one in value] if isinstance(value, list) else value
