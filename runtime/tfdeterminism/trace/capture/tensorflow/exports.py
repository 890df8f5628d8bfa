"""What a program writes of its graphs holds no probes: they could not run anywhere else.

SavedModels, meta graphs, frozen graphs and TensorBoard's all begin with Graph._as_graph_def: that is
where the probes are left out. It stays so after the trace has ended, as functions keep their probes.
"""

from ....wrap import wrap_permanently
from . import internals as tf

SCOPE = "tfdet_probe/"  # of all ops that are ours
_stripped = set()       # names of functions
# Checkpoints are written under names that are drawn at random, some by the clock: no part of the training.
_SAVERS = (("tensorflow.python.training.saver", "Saver"),
           ("tensorflow.python.training.tracking.util", "TrackableSaver"),
           ("tensorflow.python.checkpoint.checkpoint", "TrackableSaver"))


def strip_probes_on_export():
    """For the rest of the process; harmless to repeat."""
    wrap_permanently(tf.ops.Graph, "_as_graph_def", _as_graph_def)
    wrap_permanently(tf.control_flow_ops.ControlFlowContext, "_to_values_def", _to_values_def)
    wrap_permanently(tf.context.Context, "add_function_def", _add_function_def)


def skip_checkpoint_ops(recorder, wrappers):
    """Nothing of what is run to write a checkpoint is recorded."""
    def save(original, *args, **kwargs):
        with recorder.unrecorded():
            return original(*args, **kwargs)

    for module, name in _SAVERS:
        saver = getattr(tf.optional(module), name, None)
        if saver is not None:
            wrappers.wrap(saver, "save", save)


def _as_graph_def(original, graph, *args, **kwargs):
    kwargs.pop("use_pybind11_proto", None)  # such a message cannot be changed in Python
    graph_def, version = original(graph, *args, **kwargs)
    strip(graph_def)
    return graph_def, version


def _to_values_def(original, context, *args, **kwargs):
    """Of a cond or while of TensorFlow 1: the names of the tensors in it."""
    values = original(context, *args, **kwargs)
    values.values[:] = [name for name in values.values if not _is_ours(name)]
    for name in [name for name, value in values.external_values.items() if _is_ours(name) or _is_ours(value)]:
        del values.external_values[name]
    return values


def _add_function_def(original, context, function, *args, **kwargs):
    """Read back in the same process, a function is there already, with its probes."""
    name = function.signature.name
    if name not in _stripped or not context.has_function(name):
        original(context, function, *args, **kwargs)


def strip(graph_def):
    """Take the probes out of a GraphDef and of the functions in it."""
    _strip_nodes(graph_def.node)
    for function in graph_def.library.function:
        passed = _strip_nodes(function.node_def)
        if passed is None:
            continue
        _stripped.add(function.signature.name)
        for name, reference in list(function.ret.items()):
            function.ret[name] = _behind(reference, passed)
        for name in [name for name, node in function.control_ret.items() if _is_ours(node)]:
            del function.control_ret[name]
            function.signature.control_output.remove(name)


def _strip_nodes(nodes):
    """{name of a probe that only hands on a value: what it hands on}; None where there are no probes."""
    ours = [number for number, node in enumerate(nodes) if _is_ours(node.name)]
    if not ours:
        return None
    passed = {nodes[number].name: nodes[number].input[0] for number in ours if nodes[number].op == "Identity"}
    for number in reversed(ours):
        del nodes[number]
    for node in nodes:
        if any(_is_ours(one) for one in node.input):
            node.input[:] = [_behind(one, passed) for one in node.input
                             if not (one.startswith("^") and _is_ours(one))]
    return passed


def _is_ours(reference):
    return reference.lstrip("^").startswith(SCOPE)


def _behind(reference, passed):
    while _is_ours(reference):
        reference = passed[reference.partition(":")[0]]
    return reference
