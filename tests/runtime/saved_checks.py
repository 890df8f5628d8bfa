"""Inside a real TensorFlow: saved graphs and models of replaced ops run, and differentiate, where they are loaded.

    python saved_checks.py originals FOLDER     what TensorFlow's own ops give, once they were saved and loaded
    python saved_checks.py save FOLDER          under the library
    python saved_checks.py load FOLDER          without the library
    python saved_checks.py load-after FOLDER    under it, after ops of other kinds and in another order
    python saved_checks.py save-add FOLDER      under it, one op, first of all
    python saved_checks.py load-add FOLDER      under it, where the opposite op was the first of all

With TFDET_TESTS=all in the environment of all of them: more cases of each kind of op, and twice differentiated.
Loading prints one JSON object: {"faults": [...], "compared": {format: n}}, of one op {"gradient": [...]}.
"""

import json
import os
import warnings

import numpy as np
import tensorflow as tf
from saved_base_checks import FOLDER, VERSION, WHAT, path, tf1, to_lists
from saved_cases_checks import cases
from saved_functions_checks import differentiate_functions, import_frozen_functions, load_functions, save_functions
from saved_graphs_checks import build, differentiate_graph, in_session, load_graphs, save_graphs
from saved_models_checks import keras_formats, load_models, model, model_results


def save():
    """Save in all formats; return this process's results, by format."""
    os.makedirs(path(""))
    results = {}
    if VERSION >= (2, 0):
        results["function"] = differentiate_functions(save_functions())
        network = model()
        results["keras"] = model_results(network)
        for file in keras_formats().values():
            network.save(path(file), **({"save_format": "tf"} if file == "model" else {}))
    with tf.Graph().as_default(), tf1.Session() as session:
        names = build()
        save_graphs(session, names)  # before there are gradients in it
        results["graph"] = differentiate_graph(session)
    return results


def load():
    """Return the results of the loaded files, by format."""
    if VERSION < (2, 0):
        return load_graphs()
    functions = dict(load_functions(), **load_models())
    return dict(functions, **dict(load_graphs(), **{"frozen function": in_session(import_frozen_functions)}))


def compare(functions):
    """Return the faults, and the number of results of each format; `three`: a value and its two derivatives."""
    faults, count = [], {}
    for kind, results in sorted(functions.items()):
        source = "function" if kind in ("function", "signature") else "keras" if "keras" in kind else "graph"
        count[kind] = sum(isinstance(value, list) for three in results.values() for value in three)
        for name, expected in sorted(read("originals")[kind].items()):
            # What the originals have no gradient for may have one, but then the right one.
            elsewhere = read("originals")["frozen"].get(name, expected)
            for number, three in enumerate(zip(expected, read("saved")[source][name], elsewhere)):
                right = next((value for value in three if isinstance(value, list)), three[1])
                actual = results[name][number]
                if not are_identical(right, actual) and not are_identical(expected[number], actual):
                    faults.append("%s, %s, derivative %d: %s instead of %s" % (
                        kind, name, number, actual, expected[number]))
    return faults, count


def are_identical(one, other):
    """Whether two results are close, or the same error."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return one == other
    return np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-4, 1e-5)


def read(name):
    with open(os.path.join(FOLDER, name + ".json")) as file:
        return json.load(file)


def write(name, results):
    with open(os.path.join(FOLDER, name + ".json"), "w") as file:
        json.dump(results, file)


def install():
    """Install all patches of this version."""
    from tfdeterminism.patches import PATCHES, Replacements
    for patch in PATCHES.values():
        if patch.applies(VERSION):
            Replacements().install(patch)


def use_others():
    """Run the ops in another order than they were saved in."""
    with tf.Graph().as_default():
        for _, (function, value) in sorted(cases().items(), reverse=True):
            try:
                function(tf.constant(value))
            except Exception:
                continue


def unclear_error_faults():
    """An op whose gradient cannot be saved warns; names that older versions of the library wrote have no meaning."""
    from tensorflow.python.framework import ops

    from tfdeterminism import SavedGradientWarning
    from tfdeterminism.patches.common import OpNameScope, with_gradient, with_gradient_of_op
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    faults = ["%s is registered" % name for name in registry.list() if str(name).startswith("tfdeterminism-")]

    def by_something_else(x):
        other = tf1.placeholder(tf.float32, x.shape)
        return with_gradient_of_op("Square", lambda x: x * other, [x])

    def by_whole_numbers(x):
        return with_gradient("Square", tf.round, [x], lambda inputs, outputs, grad: grad, by_its_ops=True)
    for call in (by_something_else, by_whole_numbers):
        with tf.Graph().as_default() as graph, OpNameScope("scope", "Square"):
            x = tf1.placeholder(tf.float32, [2])
            y = call(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                text = str(graph.as_graph_def())
            if not any(issubclass(warning.category, SavedGradientWarning) for warning in caught):
                faults.append("%s: no warning" % call.__name__)
            if "tfdeterminism/" not in text or tf1.gradients(y, x)[0] is None:
                faults.append("%s: its gradient is another one, there or here" % call.__name__)
    return faults


def runs_first(op):
    """Return a function whose op gets the number of the first op of a process."""
    function = tf.function(lambda x: op(tf.zeros([3]), [[0], [1], [2]], x),
                           input_signature=[tf.TensorSpec([3], tf.float32)], autograph=False)
    function.get_concrete_function()
    return function


def save_add():
    module = tf.Module()
    module.call = runs_first(tf.tensor_scatter_nd_add)
    tf.saved_model.save(module, path("add"))


def load_add():
    """Return the gradient, or the name of the error."""
    runs_first(tf.tensor_scatter_nd_sub)
    module, x = tf.saved_model.load(path("add")), tf.ones([3])

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = module.call(x)
        return tape.gradient(y, x)
    return to_lists(gradient)


def main():
    if WHAT.endswith("-add"):
        install()
        return save_add() if WHAT == "save-add" else print(json.dumps({"gradient": load_add()}))
    if WHAT in ("save", "load-after"):
        install()
    if WHAT == "originals":
        save()
        write("originals", load())
    elif WHAT == "save":
        from tfdeterminism import SavedGradientWarning
        warnings.simplefilter("error", SavedGradientWarning)
        write("saved", save())
    else:
        if WHAT == "load-after":
            use_others()
        faults, count = compare(load())
        if WHAT == "load-after":
            faults += unclear_error_faults()
        print(json.dumps({"faults": faults, "compared": count}))


if __name__ == "__main__":
    main()
