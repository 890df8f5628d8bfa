"""The ops of a saved graph that other processes can differentiate."""

from tfdeterminism.patches.graphdef import NotExportableError, data_inputs
from tfdeterminism.patches.release import version

# Ops whose gradient is zero, without an error.
_ZERO_GRADIENT_OPS = frozenset(("Ceil", "Floor", "FloorDiv", "FloorMod", "Rint", "Round", "Sign"))


def has_gradient(op_type):
    """Return whether TensorFlow has a gradient function for an op."""
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    try:
        return registry.lookup(op_type) is not None
    except LookupError:
        return False


def is_unportable_loop(op_type):
    """Return whether an op belongs to a loop that another process may be unable to differentiate.

    This includes loops of TensorFlow 1: a GraphDef does not say which ops belong to them. Until 2.3 the gradient of a
    While is registered only in the process that built one.
    """
    return op_type == "NextIteration" or (op_type in ("StatelessWhile", "While") and version() < (2, 4))


def require_differentiable(view, nodes, sources, types, results):
    """Raise NotExportableError if gradients do not reach an op's inputs from its results.

    Args:
        view: a graphdef.View.
        nodes: the nodes between inputs and results.
        sources, results: names of the tensors at either end.
        types: of the sources.
    """
    borders = [view.split(source) for source in sources]
    for loop in [inner.name for inner in nodes if is_unportable_loop(inner.op)]:
        raise NotExportableError("where no loop was made, there is no gradient for %s" % loop)
    ends = set(view.split(result) for result in results)
    for source, kind in zip(borders, types):
        if _is_real_or_complex(kind):
            reached = _flow(view, source, nodes, lambda inner: inner.op == "StopGradient")
            if ends.intersection(_flow(view, source, nodes, lambda inner: False)) - reached:
                raise NotExportableError("only gradients that are stopped come to an input")
            _require_no_zero_gradient(view, source, reached)


def _flow(view, source, nodes, ends_at):
    """Return the tensors (node, output) that depend on source, by the nodes for which ends_at(node) is false."""
    reached, previous_size = set([source]), 0
    while previous_size < len(reached):
        previous_size = len(reached)
        for node in nodes:
            if not ends_at(node) and reached.intersection(view.split(reference) for reference in data_inputs(node)):
                reached.update(_differentiable_outputs(view, node))
    return reached


def _differentiable_outputs(view, node):
    types = [dtype for _, dtype in view.outputs(node)]
    return [tensor for tensor, dtype in zip(view.tensors(node), types) if _is_real_or_complex(dtype)]


def _require_no_zero_gradient(view, source, reached):
    """Reject ops with a zero gradient; StopGradient is intended if gradients have another path."""
    for name in sorted(set(name for name, _ in reached - set([source]))):
        if view.by_name[name].op in _ZERO_GRADIENT_OPS:
            raise NotExportableError("no gradient passes %s" % name)


def _is_real_or_complex(kind):
    from tensorflow.python.framework import dtypes
    return dtypes.as_dtype(kind).is_floating or dtypes.as_dtype(kind).is_complex
