"""Which ops of a saved graph other processes can differentiate."""

from tfdeterminism.patches.graphdef import NotExportableError, data
from tfdeterminism.patches.release import version

# Ops whose gradient is zero, without an error.
_ZERO_GRADIENT_OPS = frozenset(("Ceil", "Floor", "FloorDiv", "FloorMod", "Rint", "Round", "Sign"))


def has_gradient(op_type):
    """Whether TensorFlow has a gradient function for an op."""
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    try:
        return registry.lookup(op_type) is not None
    except LookupError:
        return False


def is_unportable_loop(op_type):
    """Whether an op belongs to a loop that another process may be unable to differentiate.

    Loops of TensorFlow 1 are such: a GraphDef does not say which ops belong to them.  Until 2.3 the gradient of a While
    is registered only in the process that built one.
    """
    return op_type == "NextIteration" or (op_type in ("StatelessWhile", "While") and version() < (2, 4))


def require_differentiable(view, inside, sources, types, results):
    """Raise NotExportableError if gradients do not reach an op's inputs from its results.

    Args:
        view: a graphdef.View.
        inside: the nodes between inputs and results.
        sources, results: names of the tensors at either end.
        types: of the sources.
    """
    borders = [view.split(source) for source in sources]
    for loop in [inner.name for inner in inside if is_unportable_loop(inner.op)]:
        raise NotExportableError("where no loop was made, there is no gradient for %s" % loop)
    ends = set(view.split(result) for result in results)
    for source, kind in zip(borders, types):
        if _is_real_or_complex(kind):
            found = _flow(view, source, inside, lambda inner: inner.op == "StopGradient")
            if ends.intersection(_flow(view, source, inside, lambda inner: False)) - found:
                raise NotExportableError("only gradients that are stopped come to an input")
            _require_no_zero_gradient(view, source, found)


def _flow(view, source, inside, ends_at):
    """The tensors that depend on source, by nodes of `inside` for which ends_at(node) is false."""
    found, before = set([source]), 0
    while before < len(found):
        before = len(found)
        for node in inside:
            if not ends_at(node) and found.intersection(view.split(one) for one in data(node)):
                found.update(_reached(view, node))
    return found


def _reached(view, node):
    kinds = [kind for _, kind in view.outputs(node)]
    return [one for one, kind in zip(view.tensors(node), kinds) if _is_real_or_complex(kind)]


def _require_no_zero_gradient(view, source, found):
    """Reject ops with a zero gradient; StopGradient is intended if gradients have another path."""
    for name in sorted(set(name for name, _ in found - set([source]))):
        if view.by_name[name].op in _ZERO_GRADIENT_OPS:
            raise NotExportableError("no gradient passes %s" % name)


def _is_real_or_complex(kind):
    from tensorflow.python.framework import dtypes
    return dtypes.as_dtype(kind).is_floating or dtypes.as_dtype(kind).is_complex
