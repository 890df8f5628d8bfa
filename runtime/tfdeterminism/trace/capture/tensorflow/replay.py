"""The replay of one op, in a graph or eagerly, on the inputs that a trace stores."""

import tensorflow

from ... import errors
from .. import digest
from . import internals as tf

# Modules whose ops only compute: no files, summaries, debugging, communication, state, compilers, calls into Python.
_MODULES = ("array", "bitwise", "image", "linalg", "math", "nn", "sparse", "special_math", "spectral")
_NO_NUMBERS = ("string", "resource", "variant")


def is_pure(op):
    """Return whether it is a TensorFlow op that computes numbers from numbers, and does nothing else."""
    modules = [tf.optional("tensorflow.python.ops.gen_{}_ops".format(name)) for name in _MODULES]
    is_known = any(hasattr(module, op) for module in modules) and not op.startswith(("_", "Debug", "Copy"))
    definition = _definition(op) if is_known else None
    if definition is None or definition.is_stateful or not definition.input_arg or not definition.output_arg:
        return False
    types = [argument.type for argument in list(definition.input_arg) + list(definition.output_arg) if argument.type]
    return not any(tf.dtypes.as_dtype(kind).base_dtype.name in _NO_NUMBERS for kind in types) \
        and not any("func" in attribute.type for attribute in definition.attr)


def _definition(op):
    registry = tf.optional("tensorflow.python.framework.op_def_registry")
    return registry.get(op) if hasattr(registry, "get") else registry.get_registered_ops().get(op)


def run(meta, arrays, times):
    """Run a pure op several times and return [per output: [digest of each run]].

    meta, arrays: the result of replay.load().
    """
    if "node_def" in meta and _node(meta).op != meta["op"]:
        raise ValueError("its parts speak of different ops")
    if set(meta["dtypes"]) & set(_NO_NUMBERS):
        raise ValueError("it has other inputs than numbers")
    if "GPU" in meta.get("device", "") and not tf.gpus():
        raise errors.UsageError("it ran on a GPU, which is not here, and another device says nothing of it",
                              "replay it on the machine that recorded it")
    return (_run_in_graph if "node_def" in meta else _run_eagerly)(meta, arrays, times)


def _to_typed_arrays(meta, arrays):
    """Return the arrays in TensorFlow's types."""
    return [data if name == "string" else data.view(getattr(tf.dtypes, name).as_numpy_dtype).reshape(shape)
            for name, (data, shape) in zip(meta["dtypes"], arrays)]


def _node(meta):
    return tensorflow.compat.v1.NodeDef.FromString(bytes.fromhex(meta["node_def"]))


def _run_in_graph(meta, arrays, times):
    node = _node(meta)
    for name in ("_class", "_XlaMustCompile"):
        if name in node.attr:
            del node.attr[name]
    graph = tf.ops.Graph()
    with graph.as_default():
        placeholders = [tensorflow.compat.v1.placeholder(getattr(tf.dtypes, name), shape)
                        for name, shape in zip(meta["dtypes"], meta["shapes"])]
        del node.input[:]
        node.input.extend(placeholder.name for placeholder in placeholders)
        node.name = "replayed"
        graph_def = graph.as_graph_def()
        graph_def.node.extend([node])
    replay_graph = tf.ops.Graph()
    with replay_graph.as_default():
        tensorflow.import_graph_def(graph_def, name="")
        op = replay_graph.get_operation_by_name("replayed")
        feeds = dict(zip([placeholder.name for placeholder in placeholders], _to_typed_arrays(meta, arrays)))
        config = tensorflow.compat.v1.ConfigProto(allow_soft_placement=True)
        with tensorflow.compat.v1.Session(graph=replay_graph, config=config) as session:
            runs = [session.run(list(op.outputs), feeds) for _ in range(times)]
    return [[digest.digest_array(value) for value in output] for output in zip(*runs)]


def _run_eagerly(meta, arrays, times):
    if hasattr(tensorflow.compat.v1, "enable_eager_execution"):
        tensorflow.compat.v1.enable_eager_execution()
    attrs = tuple(_from_json(attribute) for attribute in meta["eager_attrs"])
    results = []
    with tensorflow.device(meta.get("device") or None):
        inputs = [tf.constant(value) for value in _to_typed_arrays(meta, arrays)]
        for _ in range(times):
            outputs = tf.execute.quick_execute(meta["op"], meta["outputs"], inputs, attrs, tf.context.context())
            results.append([digest.digest_array(output.numpy()) for output in outputs])
    return list(zip(*results))


def _from_json(value):
    if isinstance(value, dict):
        return bytes.fromhex(value["bytes"])
    return [_from_json(element) for element in value] if isinstance(value, list) else value
