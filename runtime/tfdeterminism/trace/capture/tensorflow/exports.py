"""The removal of probes from exported graphs, because probes cannot run anywhere else.

SavedModels, meta graphs, frozen graphs and TensorBoard's graphs are all made by Graph._as_graph_def, which is wrapped
here. The wrappers stay after the trace has ended, because functions keep their probes.
"""

from ....wrap import wrap_permanently
from . import internals as tf

SCOPE = "tfdet_probe/"  # name scope of the probes
_stripped = set()       # names of functions
# Checkpoints are written under random or time-dependent names, which are no part of the training.
_SAVERS = (("tensorflow.python.training.saver", "Saver"),
           ("tensorflow.python.training.tracking.util", "TrackableSaver"),
           ("tensorflow.python.checkpoint.checkpoint", "TrackableSaver"))


def strip_probes_on_export():
    """Install the wrappers for the rest of the process. More than one call is harmless."""
    wrap_permanently(tf.ops.Graph, "_as_graph_def", _as_graph_def)
    wrap_permanently(tf.control_flow_ops.ControlFlowContext, "_to_values_def", _to_values_def)
    wrap_permanently(tf.context.Context, "add_function_def", _add_function_def)


def skip_checkpoint_ops(recorder, wrappers):
    """Do not record the ops that write a checkpoint."""
    def save(original, *args, **kwargs):
        with recorder.unrecorded():
            return original(*args, **kwargs)

    for module, name in _SAVERS:
        saver = getattr(tf.optional(module), name, None)
        if saver is not None:
            wrappers.wrap(saver, "save", save)


def _as_graph_def(original, graph, *args, **kwargs):
    kwargs.pop("use_pybind11_proto", None)  # a pybind11 message cannot be changed in Python
    graph_def, version = original(graph, *args, **kwargs)
    strip(graph_def)
    return graph_def, version


def _to_values_def(original, context, *args, **kwargs):
    """Remove probes from the list of tensors of a TensorFlow 1 cond or while."""
    values = original(context, *args, **kwargs)
    values.values[:] = [name for name in values.values if not _is_probe(name)]
    for name in [name for name, value in values.external_values.items() if _is_probe(name) or _is_probe(value)]:
        del values.external_values[name]
    return values


def _add_function_def(original, context, function, *args, **kwargs):
    """Skip a function that is read back in the same process, where it exists with its probes."""
    name = function.signature.name
    if name not in _stripped or not context.has_function(name):
        original(context, function, *args, **kwargs)


def strip(graph_def):
    """Remove the probes from a GraphDef and from the functions in it."""
    _strip_nodes(graph_def.node)
    for function in graph_def.library.function:
        forwarded = _strip_nodes(function.node_def)
        if forwarded is None:
            continue
        _stripped.add(function.signature.name)
        for name, reference in list(function.ret.items()):
            function.ret[name] = _resolve_forwarded(reference, forwarded)
        for name in [name for name, node in function.control_ret.items() if _is_probe(node)]:
            del function.control_ret[name]
            function.signature.control_output.remove(name)


def _strip_nodes(nodes):
    """Return {name of a probe that forwards a value: name of the value}, or None if there are no probes."""
    probe_indices = [index for index, node in enumerate(nodes) if _is_probe(node.name)]
    if not probe_indices:
        return None
    forwarded = {nodes[index].name: nodes[index].input[0] for index in probe_indices if nodes[index].op == "Identity"}
    for index in reversed(probe_indices):
        del nodes[index]
    for node in nodes:
        if any(_is_probe(name) for name in node.input):
            node.input[:] = [_resolve_forwarded(name, forwarded) for name in node.input
                             if not (name.startswith("^") and _is_probe(name))]
    return forwarded


def _is_probe(reference):
    return reference.lstrip("^").startswith(SCOPE)


def _resolve_forwarded(reference, forwarded):
    while _is_probe(reference):
        reference = forwarded[reference.partition(":")[0]]
    return reference
