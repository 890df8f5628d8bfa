"""Inside a real TensorFlow: the graphs of the replaced ops, the arguments that they reject, and their restoration.

    python patches_checks.py '{"order_dependent": ["BiasAddGrad", ...], "patched": true}'

Prints one JSON object: {"structure": {scenario: [op types found]}, "reach": {layer: [...]}, "faults": [...]}.
Without patches ("patched": false) only the graphs are built: each has to show what the patches remove.
"""

import json
import re
import sys

import numpy as np
import tensorflow as tf
from patches_arguments_checks import error_differences
from patches_base_checks import KEYS, VERSION, patched, tf1
from patches_indices_checks import not_a_number, refused
from patches_layers_checks import built_graph, keras_layers, traced_graph
from patches_restore_checks import names, restore_faults
from patches_scenarios_checks import scenarios


def types_in(definition):
    """The op types of a graph and of the functions that it calls, without ops on integers and exact sums.

    Sums of integers do not depend on their order, whichever kernel adds them; nor do exact ones, see exact_checks.py.
    """
    nodes = list(definition.node) + [node for function in definition.library.function for node in function.node_def]
    return set(node.op for node in nodes if not _of_integers(node) and not _is_exact(node))


def _is_exact(node):
    """Whether the op adds, in float64, numbers that were rounded so that every partial sum is exact."""
    in_float64 = "T" in node.attr and node.attr["T"].type == tf.float64.as_datatype_enum
    return in_float64 and "ExactSum" in re.split("[/_]", node.name)


def _of_integers(node):
    number = node.attr["T"].type if "T" in node.attr else 0  # 0: no type, or a list of them
    return number != 0 and tf.as_dtype(number).is_integer


def structure(op_types):
    """Return {scenario: the order-dependent op types of its graph}."""
    result = {}
    for name, build in scenarios():
        with tf.Graph().as_default() as graph:
            build()
            result[name] = sorted(op for op in types_in(graph.as_graph_def()) & op_types if not write_once(graph, op))
    return result


def write_once(graph, op_type):
    """Whether all scatters of this type into variables write each element once; determined by running them."""
    into_variable = op_type.startswith(("Scatter", "ResourceScatter")) and op_type != "ScatterNd"
    ops = [op for op in graph.get_operations() if op.type == op_type]
    if not into_variable or any(node.op == op_type for function in graph.as_graph_def().library.function
                                for node in function.node_def):
        return False
    with tf1.Session(graph=graph) as session:
        session.run(tf1.global_variables_initializer())
        indices = session.run([op.inputs[1] for op in ops])
    depths = [index_values.shape[-1] if "Nd" in op_type else 1 for index_values in indices]
    return all(len(np.unique(index_values.reshape(-1, depth), axis=0)) == index_values.size // depth
               for index_values, depth in zip(indices, depths))


def reach(op_types):
    """Return {layer: the order-dependent op types of its graph}, for the Keras layers."""
    result = {}
    for name, key, make, shape, dtype in keras_layers():
        if key not in KEYS:
            continue
        value = np.ones(shape, dtype)
        graph = traced_graph(make, value) if VERSION >= (2, 0) else built_graph(make, value)
        result[name] = sorted(types_in(graph) & op_types)
    return result


def crops():
    """Return ten image gradients of crop_and_resize with 2,048 boxes: TensorFlow's CPU kernel races on them."""
    r = np.random.RandomState(1)
    image, boxes = r.uniform(size=(1, 16, 16, 4)).astype("float32"), r.uniform(size=(2048, 4)).astype("float32")
    with tf.Graph().as_default(), patched("crop-and-resize"), tf1.Session() as session:
        x = tf.constant(image)
        y = tf1.image.crop_and_resize(x, tf.constant(boxes), tf.zeros([2048], tf.int32), [3, 3])
        gradient = tf1.gradients(y, x, grad_ys=tf.constant(r.uniform(size=(2048, 3, 3, 4)).astype("float32")))[0]
        results = set(session.run(gradient).tobytes() for _ in range(10))
    return [] if len(results) == 1 else ["crop_and_resize gives %d results" % len(results)]


def main():
    request = json.loads(sys.argv[1])
    op_types = set(request["order_dependent"])
    if not request["patched"]:
        print(json.dumps({"structure": structure(op_types), "reach": reach(op_types), "faults": []}))
        return
    faults = []
    with patched():
        result = {"structure": structure(op_types), "reach": reach(op_types)}
    if VERSION < (2, 0):
        # Graphs are built first: eager execution is switched on once, for the rest of the process.
        tf1.enable_eager_execution()
    for check in (error_differences, refused, not_a_number, names, restore_faults, crops):
        faults += ["%s: %s" % (check.__name__, fault) for fault in check()]
    print(json.dumps(dict(result, faults=faults)))


if __name__ == "__main__":
    main()
