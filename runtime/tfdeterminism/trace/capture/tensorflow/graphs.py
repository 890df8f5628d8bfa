"""Helpers for the program's graphs, and for the probes in them."""

import contextlib
import threading

from . import internals as tf
from . import op_traits
from .exports import SCOPE

_changing = threading.RLock()


@contextlib.contextmanager
def unfinalized(graph):
    """Allow new ops in a finalized graph in the block, for one thread at a time."""
    with _changing:
        finalized, graph._finalized = graph._finalized, False
        try:
            yield
        finally:
            graph._finalized = finalized


class ProbeScope(object):
    """A scope in which new ops depend on nothing around them, and shift no seed of the program."""

    def __init__(self, graph):
        self._graph = graph
        self._contexts = [graph.as_default(), graph.control_dependencies(None), tf.stop_recording()]

    def __enter__(self):
        for context in self._contexts:
            context.__enter__()
        self._scope = tf.ops.name_scope(SCOPE)
        self._scope.__enter__()
        self._first = _count(self._graph)

    def __exit__(self, *exception):
        self._graph._tfdet_added = getattr(self._graph, "_tfdet_added", 0) + _count(self._graph) - self._first
        self._scope.__exit__(*exception)
        for context in reversed(self._contexts):
            context.__exit__(*exception)


def hide_additions(wrappers):
    """Exclude probes from the number of ops in a graph, from which TF up to 2.14 derives seeds."""
    last_id = vars(tf.ops.Graph).get("_last_id")
    if last_id is not None:
        wrappers.set(tf.ops.Graph, "_last_id",
                    property(lambda graph: last_id.__get__(graph) - getattr(graph, "_tfdet_added", 0)))


def ancestors(pending, border=frozenset()):
    """Return these ops and all on which they depend. border: ops whose outputs are fed, not computed."""
    visited, pending = set(), list(pending)
    while pending:
        op = pending.pop()
        if op not in visited:
            visited.add(op)
            if op not in border:
                pending.extend(tensor.op for tensor in op.inputs)
                pending.extend(op.control_inputs)
    return visited


def forwarded_tensor(tensor):
    """Return the tensor whose bytes this one forwards, or itself if its op computes them."""
    while tensor.op.type in op_traits.ALIASES and len(tensor.op.inputs):
        tensor = tensor.op.inputs[0]
    return tensor


def _count(graph):
    """Return the number of ops that were ever created in a graph, probes included."""
    return graph._next_id_counter if hasattr(graph, "_next_id_counter") else 0
