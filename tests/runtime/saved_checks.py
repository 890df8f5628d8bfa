"""Inside a real TensorFlow: does what is saved run, and differentiate, where it is loaded?

    python saved_checks.py originals FOLDER     what TensorFlow's own ops give, once they were saved and loaded
    python saved_checks.py save FOLDER          under the library
    python saved_checks.py load FOLDER          without the library
    python saved_checks.py load-after FOLDER    under it, after ops of other kinds and in another order
    python saved_checks.py save-add FOLDER      under it, one op, first of all
    python saved_checks.py load-add FOLDER      under it, where the opposite op was the first of all

With TFDET_SAVED_CHECKS=all in the environment of all of them: more cases of each kind of op, and twice differentiated.
Loading prints one JSON object: {"faults": [...], "compared": {format: n}}, of one op {"gradient": [...]}.
"""

import json
import os
import sys
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
tf1.logging.set_verbosity("ERROR")
WHAT, FOLDER = sys.argv[1:3]
ALL = os.environ.get("TFDET_SAVED_CHECKS") == "all"


def values(shape):
    return np.random.RandomState(3).uniform(0.2, 1, shape).astype("float32")


def sparse(x, **options):
    matrix = tf.SparseTensor(np.array([[0, 1], [1, 0], [1, 2]], np.int64), values((3,)), [3, 4])
    return tf.sparse.sparse_dense_matmul(matrix, x, **options)


def sparse_values(x):
    matrix = tf.SparseTensor(np.array([[0, 1], [1, 0], [1, 2]], np.int64), x, [3, 4])
    return tf.sparse.sparse_dense_matmul(matrix, values((4, 2)))


def sparse_found(x):
    """Of a matrix whose number of elements is known only when it runs."""
    places = tf.where(x > 0.5)
    matrix = tf.SparseTensor(places, tf.gather_nd(x, places), [4, 2])
    return tf.sparse.sparse_dense_matmul(matrix, values((2, 3)))


def resized(resize, size):
    """The gradient of a resizing: what is replaced."""
    return lambda x: gradient_of(lambda image: resize(image, [4, 3]), tf.zeros([1] + size + [2]), x)


def cropped(x):
    return gradient_of(lambda image: tf.image.crop_and_resize(image, [[0.1, 0.2, 0.8, 0.7]], [0], [3, 2]),
                       values((1, 4, 5, 2)), x)


def cropped_at(boxes):
    return tf.image.crop_and_resize(values((1, 4, 5, 2)), boxes, [0], [3, 2])


def normalized(x):
    """The gradient of a batch normalization that does not train."""
    def normal(scale):
        return tf1.nn.fused_batch_norm(x, scale, [0.0, 0.1], [0.5, 0.6], [1.0, 1.1], is_training=False)[0]
    return gradient_of(normal, tf.ones([2]), values((1, 4, 5, 2)))


def gradient_of(function, at, upstream):
    """Built into the graph at hand, so that it is saved."""
    at = tf.convert_to_tensor(at)
    return tf.convert_to_tensor(tf1.gradients(function(at), at, grad_ys=upstream)[0])


def looped(x):
    """A replaced op inside of a loop."""
    def body(i, y):
        return i + 1, y + tf.math.unsorted_segment_sum(x * y[:, :1], [1, 0, 1, 1], 4)
    return tf1.while_loop(lambda i, y: i < 3, body, [tf.constant(0), tf.ones_like(x)])[1]


def branched(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: tf.scatter_nd([[0], [2], [0], [3]], x * x, [5, 2]),
                    lambda: tf.zeros([5, 2]))


def after_something(x):
    """What it is made of must not lose that it runs after something else."""
    with tf.control_dependencies([tf1.assert_greater(tf.reduce_sum(x), -1.0)]):
        return tf.math.unsorted_segment_sum(x * 2.0, [1, 0, 1, 1], 3)


def cases():
    """name -> (function of one tensor, a value for it)."""
    places, hot = [[0], [2], [0], [3]], np.eye(4, dtype="float32")[:3]
    rows, image = values((4, 2)), values((1, 4, 5, 2))
    m, n = tf.math, tf.nn
    return {
        "segment_sum": (lambda x: m.segment_sum(x, [0, 0, 1, 3]), rows),
        "segment_prod": (lambda x: m.segment_prod(x, [0, 0, 1, 3]), rows),
        "unsorted_segment_sum": (lambda x: m.unsorted_segment_sum(x, [1, 0, -1, 1], 3), rows),
        "unsorted_segment_prod": (lambda x: m.unsorted_segment_prod(x, [1, 0, 1, 1], 3), rows),
        "unsorted_segment_mean": (lambda x: m.unsorted_segment_mean(x, [1, 0, 1, 1], 3), rows),
        "gather backprop": (lambda x: gradient_of(lambda table: tf.gather(table, [1, 1, 0, 2]) ** 2, x, rows), rows),
        "scatter_nd": (lambda x: tf.scatter_nd(places, x, [5, 2]), rows),
        "tensor_scatter_nd_add": (lambda x: tf.tensor_scatter_nd_add(x, places, rows), values((5, 2))),
        "tensor_scatter_nd_add of": (lambda x: tf.tensor_scatter_nd_add(values((5, 2)), places, x), rows),
        "tensor_scatter_nd_sub of": (lambda x: tf.tensor_scatter_nd_sub(values((5, 2)), places, x), rows),
        "tensor_scatter_nd_update": (lambda x: tf.tensor_scatter_nd_update(x, places[1:], rows[1:]), values((5, 2))),
        "softmax_xent": (lambda x: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=0.7 * hot, logits=x),
                         values((3, 4))),
        "softmax_xent to labels": (lambda x: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=hot),
                                   values((3, 4))),
        "sparse_softmax_xent": (
            lambda x: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3, 1], logits=x), values((3, 4))),
        "bincount": (lambda x: m.bincount(tf.constant([0, 2, 2, 1]), weights=x), values((4,))),
        "sparse_dense_matmul": (sparse, rows),
        "sparse_dense_matmul adjoint": (lambda x: sparse(x, adjoint_a=True, adjoint_b=True), values((2, 3))),
        "sparse_dense_matmul of": (sparse_values, values((3,))),
        "sparse_dense_matmul found": (sparse_found, rows),
        "depthwise_conv backprop": (
            lambda x: gradient_of(lambda f: n.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME"), tf.ones([2, 2, 2, 1]),
                                  image), image),
        "crop_and_resize backprop": (cropped, values((1, 3, 2, 2))),
        "crop_and_resize to boxes": (cropped_at, np.array([[0.1, 0.2, 0.8, 0.7]], "float32")),
        "batch_norm backprop": (normalized, image),
        "adjust_contrast": (lambda x: tf.image.adjust_contrast(x, 1.5), image),
        "bias_add": (lambda x: n.bias_add(rows, x), values((2,))),
        "bilinear backprop": (resized(tf1.image.resize_bilinear, [9, 7]), values((1, 4, 3, 2))),
        "nearest backprop": (resized(tf1.image.resize_nearest_neighbor, [9, 7]), values((1, 4, 3, 2))),
        "in a loop": (looped, rows),
        "in a branch": (branched, rows),
        "after something": (after_something, rows),
    }


# Of these the sizes are also unknown, so that they are made of other ops.
OF_ANY_SIZE = ("segment_sum", "unsorted_segment_prod", "scatter_nd", "sparse_softmax_xent", "sparse_dense_matmul",
               "nearest backprop", "in a loop")
# Others are of the same kind.
ONLY_WITH_ALL = ("segment_sum of any size", "unsorted_segment_prod of any size", "in a loop of any size",
                 "sparse_dense_matmul of any size",
                 "segment_prod", "unsorted_segment_mean", "tensor_scatter_nd_add", "softmax_xent to labels",
                 "sparse_dense_matmul adjoint", "bilinear backprop")
TWICE = ("scatter_nd", "softmax_xent", "sparse_dense_matmul", "in a branch", "model")

FROZEN_AS_FUNCTIONS = ("unsorted_segment_sum", "sparse_dense_matmul", "nearest backprop")


def all_cases():
    """(name, function, value, static shape)"""
    for name, (function, value) in sorted(cases().items()):
        shapes = [(name, list(value.shape))]
        if name in OF_ANY_SIZE:
            shapes.append((name + " of any size", [None] + list(value.shape[1:])))
        for name, shape in shapes:
            if ALL or name not in ONLY_WITH_ALL:
                yield name, function, value, shape


def plain(compute):
    """What it computes as lists, or the name of the error."""
    try:
        result = compute()
    except Exception as error:
        return type(error).__name__
    return None if result is None else np.asarray(result).tolist()


# --- functions and Keras models ---

def functions():
    """name -> tf.function, of all cases that this TensorFlow can build."""
    found = {}
    for name, function, _, shape in all_cases():
        made = tf.function(function, input_signature=[tf.TensorSpec(shape, tf.float32)], autograph=False)
        try:
            made.get_concrete_function()
        except Exception:
            continue
        found[name] = made
    return found


def know_loops(name):
    """Until 2.3 a process that made no While cannot differentiate one: that is for loops which are the case itself."""
    if WHAT == "load" and (2, 0) <= VERSION < (2, 4):
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import cond_v2, while_v2  # noqa: F401 (of an If, neither)
        for op_type in ("While", "StatelessWhile"):
            ops._gradient_registry._registry.pop(op_type, None)
            if "in a loop" in name:
                ops.RegisterGradient(op_type)(while_v2._WhileGrad)


def slopes(name, function, value):
    """The value, the gradient of the sum of its squares, and of some the gradient of the sum of that one's squares."""
    know_loops(name)

    def slope(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x) ** 2
        found = tape.gradient(y, x)
        return None if found is None else tf.convert_to_tensor(found)
    x = tf.constant(value)
    # 2.4 takes minutes for the functions of a loop's second derivative.
    twice = name in TWICE or (ALL and "in a loop" not in name)
    return [plain(lambda: function(x)), plain(lambda: slope(function, x)),
            plain(lambda: slope(lambda x: slope(function, x), x)) if twice else None]


def of_functions(found):
    where = dict((name, value) for name, _, value, _ in all_cases())
    return dict((name, slopes(name, function, where[name])) for name, function in found.items())


def save_functions():
    module, made = tf.Module(), functions()
    for name, function in made.items():
        setattr(module, attribute(name), function)
    tf.saved_model.save(module, path("functions"), dict(
        (attribute(name), function.get_concrete_function()) for name, function in made.items()))
    for name in FROZEN_AS_FUNCTIONS:
        freeze(made[name].get_concrete_function(), attribute(name) + ".pb")
    return made


def freeze(function, file):
    from tensorflow.python.framework import convert_to_constants
    constant = convert_to_constants.convert_variables_to_constants_v2(function)
    tf1.train.write_graph(constant.graph, path(""), file, as_text=False)


def import_frozen_functions(session):
    for name in FROZEN_AS_FUNCTIONS:
        tf.import_graph_def(read_graph(attribute(name) + ".pb"), name=attribute(name))
        tf.identity(session.graph.get_tensor_by_name(attribute(name) + "/Identity:0"), name=attribute(name) + "/y")


def load_functions():
    module = tf.saved_model.load(path("functions"))
    found = dict((name, getattr(module, attribute(name))) for name, _, _, _ in all_cases()
                 if hasattr(module, attribute(name)))
    signatures = dict((name, called(module.signatures[attribute(name)])) for name in list(found)[::3])
    return {"function": of_functions(found), "signature": of_functions(signatures)}


def called(signature):
    return lambda x: list(signature(x=x).values())[0]


def attribute(name):
    return "call_" + name.replace(" ", "_")


def path(name):
    return os.path.join(FOLDER, "originals" if WHAT == "originals" else "ours", name)


class Sums(tf.keras.layers.Layer):
    def call(self, x):
        return tf.math.unsorted_segment_sum(x, tf.cast(tf.zeros_like(x[:, 0]), tf.int32), 3)


def model():
    return tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(2,), kernel_initializer="ones"), Sums()])


def of_model(found):
    return {"model": slopes("model", found, values((4, 2)))}


def keras_formats():
    formats = {"keras h5": "model.h5"}
    if VERSION < (2, 16):
        formats["keras SavedModel"] = "model"
    if VERSION >= (2, 13):
        formats["keras zip"] = "model.keras"
    return formats


def load_models():
    found = {}
    for name, file in keras_formats().items():
        objects = None if "SavedModel" in name else {"Sums": Sums}
        try:
            found[name] = of_model(tf.keras.models.load_model(path(file), custom_objects=objects, compile=False))
        except AttributeError:
            found[name] = {"model": [None, None, None]}  # 2.0 cannot read its own files with a newer h5py
    return found


# --- graphs and sessions ---

def build():
    """The cases in the default graph; the names of those that this TensorFlow can build."""
    found = []
    for name, function, _, shape in all_cases():
        with tf1.name_scope(attribute(name)):
            x = tf1.placeholder(tf.float32, shape, name="x")
            try:
                tf.identity(function(x), name="y")
            except Exception:
                continue
        found.append(name)
    return found


def of_graph(session):
    """As slopes, of every case in the session's graph; all in one run, as each one costs seconds."""
    ops = set(op.name for op in session.graph.get_operations())
    found, wanted, given = {}, {}, {}
    for name, _, value, _ in all_cases():
        if VERSION == (2, 14) and "in a loop" in name:
            continue  # its own optimizer forgets an input when the gradient of a loop is asked for in a session
        if attribute(name) + "/y" in ops:
            know_loops(name)
            x, y = [session.graph.get_tensor_by_name("%s/%s:0" % (attribute(name), end)) for end in "xy"]
            given[x] = value
            found[name] = three = [y, derived(y, x), None]
            if ALL or name in TWICE:
                three[2] = derived(three[1], x) if isinstance(three[1], tf.Tensor) else three[1]
            wanted.update(((name, number), one) for number, one in enumerate(three) if isinstance(one, tf.Tensor))
    for (name, number), result in session.run(wanted, given).items():
        found[name][number] = result.tolist()
    return found


def derived(y, x):
    """The gradient of the sum of y's squares, None, or the name of the error."""
    try:
        found = tf1.gradients(y ** 2, x)[0]
    except Exception as error:
        y.graph._set_control_flow_context(None)  # not of the loop in which it ended
        return type(error).__name__
    return None if found is None else tf.convert_to_tensor(found)


def save_graphs(session, names):
    outputs = [attribute(name) + "/y" for name in names]
    tf1.train.export_meta_graph(path("graph.meta"))
    tf1.train.export_meta_graph(path("scope.meta"), export_scope=attribute("unsorted_segment_sum"))
    graph_def = session.graph.as_graph_def()
    constant = tf1.graph_util.convert_variables_to_constants(session, graph_def, outputs)
    tf1.train.write_graph(constant, path(""), "frozen.pb", as_text=False)
    x, y = [session.graph.get_tensor_by_name(outputs[0][:-1] + name + ":0") for name in "xy"]
    tf1.saved_model.simple_save(session, path("served"), {"x": x}, {"y": y})


def load_graphs():
    return {"meta graph": in_session(lambda session: tf1.train.import_meta_graph(path("graph.meta"))),
            "scope": in_session(lambda session: tf1.train.import_meta_graph(
                path("scope.meta"), import_scope=attribute("unsorted_segment_sum"))),
            "frozen": in_session(lambda session: tf.import_graph_def(read_graph("frozen.pb"), name="")),
            "served": in_session(lambda session: tf1.saved_model.load(session, ["serve"], path("served")))}


def read_graph(name):
    found = tf1.GraphDef()
    with open(path(name), "rb") as file:
        found.ParseFromString(file.read())
    return found


def in_session(load):
    with tf.Graph().as_default(), tf1.Session() as session:
        load(session)
        return of_graph(session)


# --- what the phases do ---

def save():
    """All formats; what this process gets, by kind."""
    os.makedirs(path(""))
    found = {}
    if VERSION >= (2, 0):
        found["function"] = of_functions(save_functions())
        network = model()
        found["keras"] = of_model(network)
        for file in keras_formats().values():
            network.save(path(file), **({"save_format": "tf"} if file == "model" else {}))
    with tf.Graph().as_default(), tf1.Session() as session:
        names = build()
        save_graphs(session, names)  # before there are gradients in it
        found["graph"] = of_graph(session)
    return found


def load():
    """What comes of it, by format."""
    if VERSION < (2, 0):
        return load_graphs()
    found = dict(load_functions(), **load_models())
    return dict(found, **dict(load_graphs(), **{"frozen function": in_session(import_frozen_functions)}))


def compare(found):
    """Faults, and how many results there were of each format."""
    faults, count = [], {}
    for kind, results in sorted(found.items()):
        source = "function" if kind in ("function", "signature") else "keras" if "keras" in kind else "graph"
        count[kind] = sum(isinstance(one, list) for three in results.values() for one in three)
        for name, wanted in sorted(read("originals")[kind].items()):
            # What the originals have no gradient for may have one, but then the right one.
            elsewhere = read("originals")["frozen"].get(name, wanted)
            for number, three in enumerate(zip(wanted, read("saved")[source][name], elsewhere)):
                right = next((one for one in three if isinstance(one, list)), three[1])
                got = results[name][number]
                if not alike(right, got) and not alike(wanted[number], got):
                    faults.append("%s, %s, derivative %d: %s instead of %s" % (
                        kind, name, number, got, wanted[number]))
    return faults, count


def alike(one, other):
    if not (isinstance(one, list) and isinstance(other, list)):
        return one == other
    return np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-4, 1e-5)


def read(name):
    with open(os.path.join(FOLDER, name + ".json")) as file:
        return json.load(file)


def write(name, found):
    with open(os.path.join(FOLDER, name + ".json"), "w") as file:
        json.dump(found, file)


def install():
    from tfdeterminism.patches import PATCHES, Replacements
    for patch in PATCHES.values():
        if patch.applies(VERSION):
            patch.install(Replacements())


def use_others():
    """Ops in another order than they were saved in."""
    with tf.Graph().as_default():
        for _, (function, value) in sorted(cases().items(), reverse=True):
            try:
                function(tf.constant(value))
            except Exception:
                continue


def never_silent():
    """What cannot be saved says so; and no name that older versions of the library wrote means anything here."""
    from tensorflow.python.framework import ops

    from tfdeterminism import SavedGradientWarning
    from tfdeterminism.patches.common import Scope, like_op, with_gradient
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    faults = ["%s is registered" % name for name in registry.list() if str(name).startswith("tfdeterminism-")]

    def by_something_else(x):
        other = tf1.placeholder(tf.float32, x.shape)
        return like_op("Square", lambda x: x * other, [x])

    def by_whole_numbers(x):
        return with_gradient("Square", tf.round, [x], lambda inputs, outputs, grad: grad, by_its_ops=True)
    for made in (by_something_else, by_whole_numbers):
        with tf.Graph().as_default() as graph, Scope("scope", "Square"):
            x = tf1.placeholder(tf.float32, [2])
            y = made(x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                text = str(graph.as_graph_def())
            if not any(issubclass(one.category, SavedGradientWarning) for one in caught):
                faults.append("%s: no warning" % made.__name__)
            if "tfdeterminism/" not in text or tf1.gradients(y, x)[0] is None:
                faults.append("%s: its gradient is another one, there or here" % made.__name__)
    return faults


def first_of_all(op):
    """A function whose op gets the number that the first op of a process gets."""
    made = tf.function(lambda x: op(tf.zeros([3]), [[0], [1], [2]], x),
                       input_signature=[tf.TensorSpec([3], tf.float32)], autograph=False)
    made.get_concrete_function()
    return made


def save_add():
    module = tf.Module()
    module.call = first_of_all(tf.tensor_scatter_nd_add)
    tf.saved_model.save(module, path("add"))


def load_add():
    """The gradient, or the name of the error."""
    first_of_all(tf.tensor_scatter_nd_sub)
    module, x = tf.saved_model.load(path("add")), tf.ones([3])

    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = module.call(x)
        return tape.gradient(y, x)
    return plain(gradient)


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
            faults += never_silent()
        print(json.dumps({"faults": faults, "compared": count}))


if __name__ == "__main__":
    main()
