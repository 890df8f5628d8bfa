"""Finds: values of a graph's op that are the same in both runs, in another order.
Why: iterations of a parallel loop ran in another order, and each computed the same values.
Example: `tf.map_fn(f, xs, parallel_iterations=10)`.
"""

from ...faults import CauseKind
from ..cause import in_graph


def holds(cause, facts):
    return cause.kind is CauseKind.ORDER and in_graph(cause.definition)


def count_records(dismissed, facts):
    return len(dismissed)
