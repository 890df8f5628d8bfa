"""The seeding of a program that sets no seed: of each graph created from now on, and of the eager runtime."""

from ....wrap import wrap_permanently
from . import internals as tf


def seed(value):
    """Install the seed. In TensorFlow 1 nothing is called now, because that would disable eager execution."""
    def on_graph_created(original, graph, *args, **kwargs):
        original(graph, *args, **kwargs)
        if type(graph) is tf.ops.Graph:  # a function's graph inherits its seed
            graph.seed = value

    def on_context_created(original, context, *args, **kwargs):
        original(context, *args, **kwargs)
        context._set_global_seed(value)

    wrap_permanently(tf.ops.Graph, "__init__", on_graph_created)
    if tf.VERSION < (2, 0):
        wrap_permanently(tf.context.Context, "__init__", on_context_created)
    else:
        tf.context.set_global_seed(value)
