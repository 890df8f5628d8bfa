"""Cases in the graph of a session: as a meta graph, frozen, and for serving."""

import tensorflow as tf
from saved_base_checks import (
    ALL,
    SECOND_ORDER_DAILY,
    VERSION,
    path,
    read_graph,
    saved_name,
    tf1,
    unregister_loop_gradients,
)
from saved_cases_checks import all_cases


def build():
    """Build the cases in the default graph; return the names of those that this TensorFlow can build."""
    names = []
    for name, function, _, shape in all_cases():
        with tf1.name_scope(saved_name(name)):
            x = tf1.placeholder(tf.float32, shape, name="x")
            try:
                tf.identity(function(x), name="y")
            except Exception:
                continue
        names.append(name)
    return names


def differentiate_graph(session):
    """Return {case: [value, gradient, second gradient]} of the session's graph, from one session run, for speed.

    The second gradient is computed for the cases of SECOND_ORDER_DAILY, or for all with TFDET_TESTS=all.
    """
    ops = set(op.name for op in session.graph.get_operations())
    results, fetches, feeds = {}, {}, {}
    for name, _, value, _ in all_cases():
        if VERSION == (2, 14) and "in a loop" in name:
            continue  # its own optimizer forgets an input when the gradient of a loop is asked for in a session
        if saved_name(name) + "/y" in ops:
            unregister_loop_gradients(name)
            x, y = [session.graph.get_tensor_by_name("%s/%s:0" % (saved_name(name), end)) for end in "xy"]
            feeds[x] = value
            results[name] = three = [y, gradient_of_squares(y, x), None]
            if ALL or name in SECOND_ORDER_DAILY:
                three[2] = gradient_of_squares(three[1], x) if isinstance(three[1], tf.Tensor) else three[1]
            fetches.update(((name, number), tensor) for number, tensor in enumerate(three)
                           if isinstance(tensor, tf.Tensor))
    for (name, number), result in session.run(fetches, feeds).items():
        results[name][number] = result.tolist()
    return results


def gradient_of_squares(y, x):
    """Return the gradient of the sum of y's squares, None, or the name of the error."""
    try:
        gradient = tf1.gradients(y ** 2, x)[0]
    except Exception as error:
        y.graph._set_control_flow_context(None)  # not of the loop in which it ended
        return type(error).__name__
    return None if gradient is None else tf.convert_to_tensor(gradient)


def save_graphs(session, names):
    outputs = [saved_name(name) + "/y" for name in names]
    tf1.train.export_meta_graph(path("graph.meta"))
    tf1.train.export_meta_graph(path("scope.meta"), export_scope=saved_name("unsorted_segment_sum"))
    graph_def = session.graph.as_graph_def()
    constant = tf1.graph_util.convert_variables_to_constants(session, graph_def, outputs)
    tf1.train.write_graph(constant, path(""), "frozen.pb", as_text=False)
    x, y = [session.graph.get_tensor_by_name(outputs[0][:-1] + name + ":0") for name in "xy"]
    tf1.saved_model.simple_save(session, path("served"), {"x": x}, {"y": y})


def load_graphs():
    return {"meta graph": in_session(lambda session: tf1.train.import_meta_graph(path("graph.meta"))),
            "scope": in_session(lambda session: tf1.train.import_meta_graph(
                path("scope.meta"), import_scope=saved_name("unsorted_segment_sum"))),
            "frozen": in_session(lambda session: tf.import_graph_def(read_graph("frozen.pb"), name="")),
            "served": in_session(lambda session: tf1.saved_model.load(session, ["serve"], path("served")))}


def in_session(load):
    """Return differentiate_graph() of the graph that `load` imports."""
    with tf.Graph().as_default(), tf1.Session() as session:
        load(session)
        return differentiate_graph(session)
