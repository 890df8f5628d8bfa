"""What other processes can differentiate once it is written."""

from tfdeterminism.patches.graphdef import Unknown, data
from tfdeterminism.patches.release import version

# No gradient passes these, and no error says so.
_FLAT = frozenset(("Ceil", "Floor", "FloorDiv", "FloorMod", "Rint", "Round", "Sign"))


def has_gradient(op_type):
    """Whether TensorFlow has a function for it."""
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    try:
        return registry.lookup(op_type) is not None
    except LookupError:
        return False


def is_unportable_loop(op_type):
    """Whether it is of a loop that another process may not differentiate.

    TensorFlow 1's cannot be: no GraphDef tells what belongs to them.  Until 2.3 the gradient of a While is registered
    only where one was made.
    """
    return op_type == "NextIteration" or (op_type in ("StatelessWhile", "While") and version() < (2, 4))


def need_differentiable(view, inside, sources, types, results):
    """Unknown where gradients end between an op's results and its inputs.

    inside: the nodes between them; sources, results: the names of the tensors at either end; types: of the sources.
    """
    borders = [view.split(source) for source in sources]
    for loop in [inner.name for inner in inside if is_unportable_loop(inner.op)]:
        raise Unknown("where no loop was made, there is no gradient for %s" % loop)
    ends = set(view.split(result) for result in results)
    for source, kind in zip(borders, types):
        if _is_real_or_complex(kind):
            found = _flow(view, source, inside, lambda inner: inner.op == "StopGradient")
            if ends.intersection(_flow(view, source, inside, lambda inner: False)) - found:
                raise Unknown("only gradients that are stopped come to an input")
            _need_no_flat(view, source, found)


def _flow(view, source, inside, ends_at):
    """The tensors inside that depend on source, but not those only by nodes for which ends_at(node)."""
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


def _need_no_flat(view, source, found):
    """StopGradient is meant, where gradients come by another way; what is flat is not."""
    for name in sorted(set(name for name, _ in found - set([source]))):
        if view.by_name[name].op in _FLAT:
            raise Unknown("no gradient passes %s" % name)


def _is_real_or_complex(kind):
    from tensorflow.python.framework import dtypes
    return dtypes.as_dtype(kind).is_floating or dtypes.as_dtype(kind).is_complex
