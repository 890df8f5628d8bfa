"""A seed for a program that sets none: for each graph that it makes from now on, and for the eager runtime."""

from ....wrap import wrap_permanently
from . import internals as tf


def seed(value):
    """In TensorFlow 1 nothing is called now: that would settle for the program that it is not eager."""
    def graph_made(original, graph, *args, **kwargs):
        original(graph, *args, **kwargs)
        if type(graph) is tf.ops.Graph:  # a function's has its seed from outside
            graph.seed = value

    def context_made(original, context, *args, **kwargs):
        original(context, *args, **kwargs)
        context._set_global_seed(value)

    wrap_permanently(tf.ops.Graph, "__init__", graph_made)
    if tf.VERSION < (2, 0):
        wrap_permanently(tf.context.Context, "__init__", context_made)
    else:
        tf.context.set_global_seed(value)
