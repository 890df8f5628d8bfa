"""Make saved graphs (SavedModels, meta graphs, frozen graphs) loadable without this package.

All of them begin with Graph._as_graph_def, which is wrapped here; `portable` rewrites the replaced ops.
"""

from tfdeterminism.patches import markers, portable
from tfdeterminism.wrap import wrap_permanently

_rewritten = set()  # type: set[str]  # names of functions that a saved graph has in another form

_inlining = []  # type: list[bool]  # not empty while TensorFlow inlines the functions of a graph


def make_portable():
    """Rewrite all graphs that are saved from now on; repeating it has no effect."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import meta_graph, ops
    from tensorflow.python.ops import control_flow_ops
    from tensorflow.python.saved_model import save
    wrap_permanently(ops.Graph, "_as_graph_def", _as_graph_def)
    wrap_permanently(meta_graph, "create_meta_graph_def", _create_meta_graph_def)
    wrap_permanently(control_flow_ops.ControlFlowContext, "_to_values_def", _to_values_def)
    wrap_permanently(context.Context, "add_function_def", _add_function_def)
    wrap_permanently(save, "_trace_gradient_functions", _trace_gradient_functions)
    try:
        from tensorflow.python.framework import convert_to_constants
    except ImportError:  # 1.13 has none
        return
    wrap_permanently(convert_to_constants, "_run_inline_graph_optimization", _inline)
    wrap_permanently(convert_to_constants, "_construct_concrete_function", _construct)


def _as_graph_def(original, graph, *args, **kwargs):
    kwargs.pop("use_pybind11_proto", None)  # Python cannot change such a message
    graph_def, version = original(graph, *args, **kwargs)
    _rewrite(graph_def, graph)
    return graph_def, version


def _trace_gradient_functions(original, *args, **kwargs):
    """Keep newer versions from saving the gradient functions that markers name: rewritten graphs have no markers."""
    from tensorflow.python.framework import ops
    registry = ops.gradient_registry._registry
    ours = dict((name, registry.pop(name)) for name in list(registry) if markers.is_marker(name))
    try:
        return original(*args, **kwargs)
    finally:
        registry.update(ours)


def _inline(original, *args, **kwargs):
    """Do not rewrite a graph while its functions are inlined; it is rewritten when it is saved."""
    _inlining.append(True)
    try:
        return original(*args, **kwargs)
    finally:
        _inlining.pop()


def _construct(original, function, graph_def, *args, **kwargs):
    """Rewrite the GraphDef of a frozen graph, which its creator may save, too."""
    concrete_function = original(function, graph_def, *args, **kwargs)
    _rewrite(graph_def, concrete_function.graph)
    return concrete_function


def _create_meta_graph_def(original, *args, **kwargs):
    """Rewrite a meta graph of one scope, which is copied node by node."""
    from tensorflow.python.framework import ops
    if kwargs.get("graph_def"):
        _rewrite(kwargs["graph_def"], kwargs.get("graph") or ops.get_default_graph())
    return original(*args, **kwargs)


def _to_values_def(original, context, export_scope=None):
    """Add the new calls to the tensor names of a cond or while context of TensorFlow 1."""
    values = original(context, export_scope)
    calls = getattr(context.pivot.graph, "_tfdeterminism_calls", {})
    for name in list(values.values):
        values.values.extend(calls.get(name.partition(":")[0], []))
    return values


def _add_function_def(original, context, function, *args, **kwargs):
    """Do not redefine a function when its saved form is loaded in the same process."""
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
        graph._tfdeterminism_calls = calls  # {marked node: tensors of the call that stands for its op}
