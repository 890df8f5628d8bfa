"""Cases as functions: saves, loads and freezes them, and differentiates them twice, as replaced ops must allow."""

import tensorflow as tf
from saved_base_checks import (
    ALL,
    SECOND_ORDER_DAILY,
    path,
    read_graph,
    saved_name,
    tf1,
    to_lists,
    unregister_loop_gradients,
)
from saved_cases_checks import all_cases

FROZEN_AS_FUNCTIONS = ("unsorted_segment_sum", "sparse_dense_matmul", "nearest backprop")


def functions():
    """Return {name: tf.function} of all cases that this TensorFlow can build."""
    functions_by_name = {}
    for name, function, _, shape in all_cases():
        traced = tf.function(function, input_signature=[tf.TensorSpec(shape, tf.float32)], autograph=False)
        try:
            traced.get_concrete_function()
        except Exception:
            continue
        functions_by_name[name] = traced
    return functions_by_name


def derivatives(name, function, value):
    """Differentiate a function twice.

    Returns:
        Its value; the gradient of the sum of its squares; the gradient of the sum of that gradient's squares, or None
        for cases where it takes too long.  Each as nested lists, or the name of the error.
    """
    unregister_loop_gradients(name)

    def gradient_of_squares(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x) ** 2
        gradient = tape.gradient(y, x)
        return None if gradient is None else tf.convert_to_tensor(gradient)
    x = tf.constant(value)
    # 2.4 takes minutes for the functions of a loop's second derivative.
    second_order = name in SECOND_ORDER_DAILY or (ALL and "in a loop" not in name)
    outputs = to_lists(lambda: function(x))
    first = to_lists(lambda: gradient_of_squares(function, x))
    second = None
    if second_order:
        second = to_lists(lambda: gradient_of_squares(lambda x: gradient_of_squares(function, x), x))
    return [outputs, first, second]


def differentiate_functions(functions_by_name):
    """Return {name: derivatives()} of these functions."""
    inputs_by_name = dict((name, value) for name, _, value, _ in all_cases())
    return dict((name, derivatives(name, function, inputs_by_name[name]))
                for name, function in functions_by_name.items())


def save_functions():
    module, traced_functions = tf.Module(), functions()
    for name, function in traced_functions.items():
        setattr(module, saved_name(name), function)
    tf.saved_model.save(module, path("functions"), dict(
        (saved_name(name), function.get_concrete_function()) for name, function in traced_functions.items()))
    for name in FROZEN_AS_FUNCTIONS:
        freeze(traced_functions[name].get_concrete_function(), saved_name(name) + ".pb")
    return traced_functions


def freeze(function, file):
    from tensorflow.python.framework import convert_to_constants
    constant = convert_to_constants.convert_variables_to_constants_v2(function)
    tf1.train.write_graph(constant.graph, path(""), file, as_text=False)


def import_frozen_functions(session):
    for name in FROZEN_AS_FUNCTIONS:
        tf.import_graph_def(read_graph(saved_name(name) + ".pb"), name=saved_name(name))
        tf.identity(session.graph.get_tensor_by_name(saved_name(name) + "/Identity:0"), name=saved_name(name) + "/y")


def load_functions():
    module = tf.saved_model.load(path("functions"))
    loaded = dict((name, getattr(module, saved_name(name))) for name, _, _, _ in all_cases()
                  if hasattr(module, saved_name(name)))
    signatures = dict((name, to_function(module.signatures[saved_name(name)])) for name in list(loaded)[::3])
    return {"function": differentiate_functions(loaded), "signature": differentiate_functions(signatures)}


def to_function(signature):
    """Return a signature as a function of one tensor."""
    return lambda x: list(signature(x=x).values())[0]
