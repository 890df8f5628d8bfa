"""What is written of a graph needs nothing of ours where it is read: SavedModels, meta graphs, frozen graphs.

All of them begin with Graph._as_graph_def: there replaced ops become what `portable` makes of them.
"""

from tfdeterminism.patches import markers, portable
from tfdeterminism.wrap import wrap_for_good

_rewritten = set()  # type: set[str]  # names of functions that were written otherwise than they are

_inlining = []  # type: list[bool]


def make_portable():
    """From now on what is written is; harmless to repeat."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import meta_graph, ops
    from tensorflow.python.ops import control_flow_ops
    from tensorflow.python.saved_model import save
    wrap_for_good(ops.Graph, "_as_graph_def", _as_graph_def)
    wrap_for_good(meta_graph, "create_meta_graph_def", _create_meta_graph_def)
    wrap_for_good(control_flow_ops.ControlFlowContext, "_to_values_def", _to_values_def)
    wrap_for_good(context.Context, "add_function_def", _add_function_def)
    wrap_for_good(save, "_trace_gradient_functions", _trace_gradient_functions)
    try:
        from tensorflow.python.framework import convert_to_constants
    except ImportError:  # 1.13 has none
        return
    wrap_for_good(convert_to_constants, "_run_inline_graph_optimization", _inline)
    wrap_for_good(convert_to_constants, "_construct_concrete_function", _construct)


def _as_graph_def(original, graph, *args, **kwargs):
    kwargs.pop("use_pybind11_proto", None)  # such a message cannot be changed in Python
    graph_def, version = original(graph, *args, **kwargs)
    _rewrite(graph_def, graph)
    return graph_def, version


def _trace_gradient_functions(original, *args, **kwargs):
    """Newer versions write gradient functions of their own accord.  Ours are not needed where there are no markers."""
    from tensorflow.python.framework import ops
    registry = ops.gradient_registry._registry
    ours = dict((name, registry.pop(name)) for name in list(registry) if markers.is_marker(name))
    try:
        return original(*args, **kwargs)
    finally:
        registry.update(ours)


def _inline(original, *args, **kwargs):
    """Functions are not made where functions are inlined; what comes of it is written later."""
    _inlining.append(True)
    try:
        return original(*args, **kwargs)
    finally:
        _inlining.pop()


def _construct(original, function, graph_def, *args, **kwargs):
    """The function from a frozen graph, which its maker may write too."""
    made = original(function, graph_def, *args, **kwargs)
    _rewrite(graph_def, made.graph)
    return made


def _create_meta_graph_def(original, *args, **kwargs):
    """Of one scope it is written node by node."""
    from tensorflow.python.framework import ops
    if kwargs.get("graph_def"):
        _rewrite(kwargs["graph_def"], kwargs.get("graph") or ops.get_default_graph())
    return original(*args, **kwargs)


def _to_values_def(original, context, export_scope=None):
    """Of a cond or while of TensorFlow 1: the names of the tensors in it.  A call is where its results are."""
    values = original(context, export_scope)
    calls = getattr(context.pivot.graph, "_tfdeterminism_calls", {})
    for name in list(values.values):
        values.values.extend(calls.get(name.partition(":")[0], []))
    return values


def _add_function_def(original, context, function, *args, **kwargs):
    """Read back in the same process, a function is there already, as it was before it was written."""
    name = function.signature.name
    if name not in _rewritten or not context.has_function(name):
        original(context, function, *args, **kwargs)


def _rewrite(graph_def, graph):
    if _inlining:
        return
    def shapes(name):
        try:
            return [output.shape.as_proto() for output in graph.get_operation_by_name(name).outputs]
        except KeyError:
            return []
    calls, functions = portable.rewrite(graph_def, shapes)
    _rewritten.update(functions)
    if calls:
        graph._tfdeterminism_calls = calls
