"""The program's own graphs, and ops of ours in them."""

import contextlib
import threading

from . import internals as tf
from . import op_traits
from .exports import SCOPE

_changing = threading.RLock()


@contextlib.contextmanager
def unfinalized(graph):
    """A finalized graph takes our ops nevertheless; one thread at a time adds them."""
    with _changing:
        finalized, graph._finalized = graph._finalized, False
        try:
            yield
        finally:
            graph._finalized = finalized


class ProbeScope(object):
    """Ops that are created in here depend on nothing around them, and shift no seed of the program's."""

    def __init__(self, graph):
        self._graph = graph
        self._contexts = [graph.as_default(), graph.control_dependencies(None), tf.stop_recording()]

    def __enter__(self):
        for one in self._contexts:
            one.__enter__()
        self._scope = tf.ops.name_scope(SCOPE)
        self._scope.__enter__()
        self._first = _count(self._graph)

    def __exit__(self, *exception):
        self._graph._tfdet_added = getattr(self._graph, "_tfdet_added", 0) + _count(self._graph) - self._first
        self._scope.__exit__(*exception)
        for one in reversed(self._contexts):
            one.__exit__(*exception)


def hide_additions(wrappers):
    """Up to TF 2.14 an op's seed is made from the number of ops before it: ours must not count."""
    last_id = vars(tf.ops.Graph).get("_last_id")
    if last_id is not None:
        wrappers.set(tf.ops.Graph, "_last_id",
                    property(lambda graph: last_id.__get__(graph) - getattr(graph, "_tfdet_added", 0)))


def ancestors(waiting, border=frozenset()):
    """These ops and all before them; border: ops whose outputs are given, not computed."""
    found, waiting = set(), list(waiting)
    while waiting:
        op = waiting.pop()
        if op not in found:
            found.add(op)
            if op not in border:
                waiting.extend(tensor.op for tensor in op.inputs)
                waiting.extend(op.control_inputs)
    return found


def forwarded_tensor(tensor):
    """The tensor whose bytes this one hands on; itself, where its op computes them."""
    while tensor.op.type in op_traits.ALIASES and len(tensor.op.inputs):
        tensor = tensor.op.inputs[0]
    return tensor


def _count(graph):
    """The number of ops that ever were made in a graph, ours included."""
    return graph._next_id_counter if hasattr(graph, "_next_id_counter") else 0
