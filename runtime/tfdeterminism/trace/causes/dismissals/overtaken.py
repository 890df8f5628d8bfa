"""Finds: values of a graph's op that are the same in both runs, in another order.
Why: iterations of a parallel loop overtook each other, and each did the same.
Example: `tf.map_fn(f, xs, parallel_iterations=10)`.
"""

from ...faults import CauseKind
from ..cause import in_graph


def holds(cause, facts):
    return cause.kind is CauseKind.ORDER and in_graph(cause.definition)


def count(dismissed, facts):
    return len(dismissed)
