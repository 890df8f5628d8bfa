"""Inside a real TensorFlow: what graphs the patched ops build, what they refuse, and how they are put back.

    python patches_checks.py '{"order_dependent": ["BiasAddGrad", ...], "patched": true}'

Prints one JSON object: {"structure": {scenario: [op types found]}, "reach": {layer: [...]}, "faults": [...]}.
Without patches ("patched": false) only the scenarios are built: each has to show what the patches remove.
"""

import json
import os
import re
import sys
import types
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tfdeterminism.patches import PATCHES, Replacements  # noqa: E402

tf1 = getattr(tf.compat, "v1", tf)
tf1.logging.set_verbosity("ERROR")
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
APPLY = [patch for patch in PATCHES.values() if patch.applies(VERSION)]
KEYS = set(patch.key for patch in APPLY)


def random(shape, dtype="float32"):
    return tf.constant(np.random.RandomState(3).uniform(0.1, 1, shape).astype(dtype))


def ints(high, shape, dtype="int32"):
    return tf.constant(np.random.RandomState(4).randint(0, high, shape).astype(dtype))


def scenarios():
    """patch key -> function that returns tensors; each is differentiated with respect to the floating-point ones."""
    tables = {
        "bias-add": [lambda: grad(tf.nn.bias_add, random((2, 3, 4)), random((4,))),
                     lambda: grad(lambda x, b: tf.nn.bias_add(x, b, data_format="NCHW"), random((2, 3, 4, 5)),
                                  random((3,)))],
        "segment": [lambda: grad(lambda d: tf.math.segment_sum(d, [0, 0, 1]), random((3, 2))),
                    lambda: [tf.math.segment_prod(random((3, 2)), [0, 0, 1])]],
        "unsorted-segment": [
            lambda: grad(lambda d: tf.math.unsorted_segment_sum(d, [1, 0, 1], 2), random((3, 2))),
            lambda: grad(lambda d: tf.math.unsorted_segment_mean(d, [1, 0, 1], 2), random((3, 2))),
            lambda: grad(lambda d: tf.math.unsorted_segment_sqrt_n(d, [1, 0, 1], 2), random((3, 2))),
            lambda: grad(lambda d: tf.math.unsorted_segment_prod(d, [1, 0, 1], 2), random((3, 2))),
            lambda: grad(lambda p: tf.gather(p, [1, 1, 0]), random((3, 2))),
            lambda: grad(lambda p: tf.gather(p, [1, 1, 0], axis=1), random((3, 2))),
            lambda: grad(lambda p: tf.nn.embedding_lookup(p, [1, 1, 0]), random((3, 2))),
            lambda: [tf.convert_to_tensor(tf.IndexedSlices(random((3, 2)), ints(3, (3,)), tf.constant([3, 2])))]],
        "resize-bilinear": [lambda: grad(lambda x: tf1.image.resize_bilinear(x, [8, 9]), random((1, 3, 4, 2)))],
        "resize-nearest": [lambda: grad(lambda x: tf1.image.resize_nearest_neighbor(x, [8, 9]), random((1, 3, 4, 2)))],
        "crop-and-resize": [
            lambda: grad(lambda x, b: tf1.image.crop_and_resize(x, b, [0, 0, 0], [4, 4]), random((1, 5, 5, 2)),
                         random((3, 4)))],
        "softmax-xent": [
            lambda: grad(lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x), random((3, 4)),
                         random((3, 4)))],
        "sparse-softmax-xent": [
            lambda: grad(lambda x: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=x),
                         random((3, 4)))],
        "fused-batch-norm-inference": [
            lambda: grad(lambda x, s, o: tf1.nn.fused_batch_norm(x, s, o, mean=random((4,)), variance=random((4,)),
                                                                 is_training=False)[0],
                         random((2, 3, 3, 4)), random((4,)), random((4,)))],
        "scatter-nd": [
            lambda: grad(lambda u: tf.scatter_nd([[0], [0], [2]], u, [3, 2]), random((3, 2))),
            lambda: grad(lambda p: tf.gather_nd(p, [[0, 1], [0, 1], [2, 0]]), random((3, 2)))],
        "tensor-scatter-nd": [
            lambda: grad(lambda t, u: tf.tensor_scatter_nd_add(t, [[0], [0]], u), random((3, 2)), random((2, 2))),
            lambda: grad(lambda t, u: tf.tensor_scatter_nd_sub(t, [[0], [0]], u), random((3, 2)), random((2, 2))),
            lambda: [tf.tensor_scatter_nd_update(random((3, 2)), [[0], [0]], random((2, 2)))]],
        "resource-scatter": [
            lambda: [into_rows("resource_scatter_" + name, variable(), [1, 1, 0], random((3, 2))) for name in
                     ("add", "sub", "mul", "div", "update")],
            lambda: [variable().scatter_add(tf.IndexedSlices(random((2, 3, 2)), [[1, 1, 0], [1, 0, 0]]))],
            lambda: [tf1.scatter_sub(variable(), [1, 1, 0], 2.0)],
            lambda: [tf1.train.GradientDescentOptimizer(0.1).minimize(embedding_loss(variable()))],
            lambda: keras_descent(variable())],
        "ref-scatter": [
            lambda: [getattr(tf1, "scatter_" + name)(variable(False), [1, 1, 0], random((3, 2))) for name in
                     ("add", "sub", "mul", "div", "update")],
            lambda: [tf1.train.GradientDescentOptimizer(0.1).minimize(embedding_loss(variable(False)))]],
        "scatter-nd-variable": [
            lambda: [getattr(tf1, "scatter_nd_" + name)(variable(resource), [[1, 0], [1, 0], [0, 1]], random((3,)))
                     for name in ("add", "sub", "update") for resource in (True, False)],
            lambda: [variable().scatter_nd_add([[1], [0], [1]], random((3, 2)))]],
        "bincount": [lambda: [raw("gen_math_ops", "bincount")([1, 2, 1], 3, random((3,)))]] + _public_bincount(),
        "sparse-dense-matmul": [
            lambda: grad(lambda v, b: tf.sparse.sparse_dense_matmul(
                tf.SparseTensor([[0, 1], [1, 0], [1, 1]], v, [2, 2]), b), random((3,)), random((2, 2)))],
        "depthwise-conv-filter": [
            lambda: grad(lambda x, w: tf1.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME"), random((1, 5, 5, 2)),
                         random((3, 3, 2, 1)))],
        "adjust-contrast": [lambda: [tf.image.adjust_contrast(random((4, 5, 3)), 2.0)]],
    }
    assert set(tables) == set(PATCHES), "every patch needs a scenario"
    return [("%s %d" % (key, number), build)
            for key in PATCHES if key in KEYS for number, build in enumerate(tables[key])]


def _public_bincount():
    """tf.math.bincount; not where it sums by unsorted_segment_sum, and that op is deterministic."""
    if (2, 7) <= VERSION < (2, 12):
        return []
    return [lambda: [tf.math.bincount([1, 2, 1], weights=random((3,)), minlength=3, maxlength=3)]]


def variable(resource=True):
    return tf1.Variable(np.ones((3, 2), "float32"), use_resource=resource)


def into_rows(name, variable, *others):
    return raw("gen_resource_variable_ops", name)(variable.handle, *others)


def embedding_loss(variable):
    return tf.reduce_sum(tf.nn.embedding_lookup(variable, [1, 1, 0]) ** 2)


def keras_descent(variable):
    return tf.keras.optimizers.SGD(0.1).get_updates(embedding_loss(variable), [variable])


def raw(module, name):
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def grad(function, *inputs):
    """The outputs, and the gradients to every input, dense."""
    outputs = function(*inputs)
    grads = tf1.gradients(outputs * tf.ones_like(outputs) * 2, list(inputs))
    return [outputs] + [tf.convert_to_tensor(one) for one in grads if one is not None]


def types_in(definition):
    """The op types of a graph and of the functions that it calls, of those that compute with fractions.

    Sums of integers do not depend on their order, whichever kernel adds them; nor do exact ones, see exact_checks.py.
    """
    nodes = list(definition.node) + [node for function in definition.library.function for node in function.node_def]
    return set(node.op for node in nodes if not _of_integers(node) and not _is_exact(node))


def _is_exact(node):
    """Whether it adds, in float64, what was rounded so that every partial sum is exact."""
    in_float64 = "T" in node.attr and node.attr["T"].type == tf.float64.as_datatype_enum
    return in_float64 and "ExactSum" in re.split("[/_]", node.name)


def _of_integers(node):
    number = node.attr["T"].type if "T" in node.attr else 0  # 0: no type, or a list of them
    return number != 0 and tf.as_dtype(number).is_integer


def structure(wanted):
    found = {}
    for name, build in scenarios():
        with tf.Graph().as_default() as graph:
            build()
            found[name] = sorted(op for op in types_in(graph.as_graph_def()) & wanted if not write_once(graph, op))
    return found


def write_once(graph, op_type):
    """Whether the ops of this type scatter into variables, and each writes every place once: run, not read off."""
    into_variable = op_type.startswith(("Scatter", "ResourceScatter")) and op_type != "ScatterNd"
    ops = [op for op in graph.get_operations() if op.type == op_type]
    if not into_variable or any(node.op == op_type for one in graph.as_graph_def().library.function
                                for node in one.node_def):
        return False
    with tf1.Session(graph=graph) as session:
        session.run(tf1.global_variables_initializer())
        indices = session.run([op.inputs[1] for op in ops])
    depths = [one.shape[-1] if "Nd" in op_type else 1 for one in indices]
    return all(len(np.unique(one.reshape(-1, depth), axis=0)) == one.size // depth
               for one, depth in zip(indices, depths))


# --- Keras ---

def keras_layers():
    """(name, patch, function of no arguments that builds forward and backward)."""
    k = tf.keras
    image, sequence, volume = (2, 6, 6, 2), (2, 6, 2), (2, 4, 4, 4, 2)
    return [
        ("Conv1D", "bias-add", lambda: k.layers.Conv1D(3, 3), sequence, "float32"),
        ("Conv2D", "bias-add", lambda: k.layers.Conv2D(3, 3), image, "float32"),
        ("Conv3D", "bias-add", lambda: k.layers.Conv3D(3, 3), volume, "float32"),
        ("Dense", "bias-add", lambda: k.layers.Dense(3), (2, 4), "float32"),
        ("Embedding", "unsorted-segment", lambda: k.layers.Embedding(7, 3), (2, 5), "int32"),
        ("UpSampling2D nearest", "resize-nearest", lambda: k.layers.UpSampling2D(2), image, "float32"),
        ("UpSampling2D bilinear", "resize-bilinear", lambda: k.layers.UpSampling2D(2, interpolation="bilinear"), image,
         "float32"),
        ("DepthwiseConv2D", "depthwise-conv-filter", lambda: k.layers.DepthwiseConv2D(3), image, "float32"),
        ("BatchNormalization frozen", "fused-batch-norm-inference", lambda: Frozen(k.layers.BatchNormalization()),
         image, "float32"),
        ("CategoricalCrossentropy", "softmax-xent",
         lambda: Loss(k.losses.CategoricalCrossentropy(from_logits=True), np.eye(4, dtype="float32")), (4, 4),
         "float32"),
        ("SparseCategoricalCrossentropy", "sparse-softmax-xent",
         lambda: Loss(k.losses.SparseCategoricalCrossentropy(from_logits=True), np.arange(4)), (4, 4), "float32"),
    ]


class Frozen(object):
    def __init__(self, layer):
        self._layer = layer

    def __call__(self, x):
        return self._layer(x, training=False)

    @property
    def trainable_variables(self):
        return self._layer.trainable_variables


class Loss(object):
    trainable_variables = ()

    def __init__(self, loss, labels):
        self._loss, self._labels = loss, labels

    def __call__(self, x):
        return self._loss(tf.constant(self._labels), x)


def reach(wanted):
    found = {}
    for name, key, make, shape, dtype in keras_layers():
        if key not in KEYS:
            continue
        value = np.ones(shape, dtype)
        graph = _traced(make, value) if VERSION >= (2, 0) else _built(make, value)
        found[name] = sorted(types_in(graph) & wanted)
    return found


def _traced(make, value):
    layer = make()
    layer(tf.constant(value))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x) ** 2)
        watched = list(layer.trainable_variables) + ([x] if x.dtype.is_floating else [])
        return [tf.convert_to_tensor(one) for one in tape.gradient(loss, watched) if one is not None]
    traced = step.get_concrete_function(tf.constant(value))  # the graph does not outlive it
    return traced.graph.as_graph_def()


def _built(make, value):
    with tf.Graph().as_default() as graph:
        layer, x = make(), tf.constant(value)
        y = layer(x)
        watched = list(layer.trainable_variables) + ([x] if x.dtype.is_floating else [])
        for one in tf1.gradients(tf.reduce_sum(y ** 2), watched):
            if one is not None:
                tf.convert_to_tensor(one)
    return graph.as_graph_def()


# --- arguments, names, errors, putting back ---

def _bad_calls():
    d = np.ones((3, 2), "float32")
    m, n = tf.math, tf.nn
    return {
        "segment": [
            lambda: m.segment_sum(d, [[0, 0, 1]]), lambda: m.segment_sum(d, [0, 1]),
            lambda: m.segment_sum(d, [1, 0, 2]),
            lambda: m.segment_sum(d, [-1, 0, 2]), lambda: m.segment_sum(d, [0., 1., 2.]), lambda: m.segment_sum(d),
            lambda: m.segment_sum(d, [0, 0, 1], nme="x"), lambda: m.segment_sum(np.array(["a"]), [0]),
            lambda: m.segment_sum(np.array([True]), [0])],
        "unsorted-segment": [
            lambda: m.unsorted_segment_sum(d, [0, 1], 2), lambda: m.unsorted_segment_sum(d, [0, 1, 5], 2),
            lambda: m.unsorted_segment_sum(d, [0, 1, 1], -1), lambda: m.unsorted_segment_sum(d, [0, 1, 1], [2]),
            lambda: m.unsorted_segment_sum(d, [0., 1., 1.], 2), lambda: m.unsorted_segment_sum(d, [0, 1, 1], 2.5),
            lambda: m.unsorted_segment_sum(d, [[[0, 1]]], 2), lambda: m.unsorted_segment_sum(None, [0], 1)],
        "bias-add": [
            lambda: n.bias_add(d, [1., 2., 3.]), lambda: n.bias_add(d[0], [1., 2.]), lambda: n.bias_add(d, d),
            lambda: n.bias_add(d, [1., 2.], data_format="WHAT"), lambda: n.bias_add(d, np.ones(2, "float64"))],
        "scatter-nd": [
            lambda: tf.scatter_nd([[9]], [1.], [3]), lambda: tf.scatter_nd([[-1]], [1.], [3]),
            lambda: tf.scatter_nd([[0]], [1., 2.], [3]), lambda: tf.scatter_nd([[0, 0]], [1.], [3]),
            lambda: tf.scatter_nd([[0.]], [1.], [3]), lambda: tf.scatter_nd([[0]], [1.], [0])],
        "tensor-scatter-nd": [
            lambda: tf.tensor_scatter_nd_add(d, [[9]], d[:1]), lambda: tf.tensor_scatter_nd_add(d, [[0]], d),
            lambda: tf.tensor_scatter_nd_update(d, [[-1]], d[:1]),
            lambda: tf.tensor_scatter_nd_sub(d, [[0]], [[1, 2]])],
        "softmax-xent": [
            lambda: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=np.ones((3, 2), "float64"), logits=d),
            lambda: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=np.ones((3, 5), "float32"), logits=d)],
        "sparse-softmax-xent": [
            lambda: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=d),
            lambda: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 7], logits=d),
            lambda: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=[0., 1., 1.], logits=d)],
        "resource-scatter": [
            lambda: into_variable("scatter_add", [0, 9], d[:2]),
            lambda: into_variable("scatter_update", [-1, 0], d[:2]),
            lambda: into_variable("scatter_add", [0, 1], d), lambda: into_variable("scatter_sub", [0, 1], d[0]),
            lambda: into_variable("scatter_add", [0, 1], np.ones((2, 3), "float32")),
            lambda: into_variable("scatter_add", [0., 1.], d[:2]),
            lambda: into_variable("scatter_add", [0, 1], np.ones((2, 2), "float64")),
            lambda: into_variable("scatter_update", [[0, 1]], d[:2]), lambda: into_variable("scatter_add", [0, 1])],
        "ref-scatter": [
            lambda: into_variable("scatter_add", [0, 9], d[:2], resource=False),
            lambda: into_variable("scatter_update", [-1, 0], d[:2], resource=False),
            lambda: into_variable("scatter_mul", [0, 1], d, resource=False),
            lambda: into_variable("scatter_div", [0, 1], np.ones((2, 2), "float64"), resource=False)],
        "scatter-nd-variable": [
            lambda: into_variable("scatter_nd_add", [[0], [9]], d[:2]),
            lambda: into_variable("scatter_nd_add", [[0, 3], [1, 1]], [1., 2.]),
            lambda: into_variable("scatter_nd_update", [[-1], [0]], d[:2], resource=False),
            lambda: into_variable("scatter_nd_sub", [[0], [1]], d),
            lambda: into_variable("scatter_nd_sub", [0, 1], d[:2]),
            lambda: into_variable("scatter_nd_add", [[0, 0, 0], [0, 0, 0]], [1., 2.])],
        "bincount": [lambda: raw("gen_math_ops", "bincount")([0, -1], 3, [1., 2.]),
                     lambda: raw("gen_math_ops", "bincount")([0, 1], -3, [1., 2.]),
                     lambda: raw("gen_math_ops", "bincount")([0, 1], 3, [1., 2., 3.]),
                     lambda: grad(lambda weights: raw("gen_math_ops", "bincount")([0, 1], 3, weights),
                                  tf.constant([1., 2.]))] + _bad_dense_bincounts(),
        "sparse-dense-matmul": [
            lambda: tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 9]], [1.], [2, 2]), d[:2]),
            lambda: tf.sparse.sparse_dense_matmul(tf.SparseTensor([[9, 0]], [1.], [2, 2]), d[:2]),
            lambda: tf.sparse.sparse_dense_matmul(tf.SparseTensor([[0, 0]], [1.], [2, 2]), d)],
        "adjust-contrast": [lambda: tf.image.adjust_contrast(d, 2.0)],
        "crop-and-resize": [
            lambda: raw("gen_image_ops", "crop_and_resize_grad_image")(
                random((1, 2, 2, 3)), random((1, 4)), [1], [1, 5, 5, 3], tf.float32),
            lambda: raw("gen_image_ops", "crop_and_resize_grad_boxes")(
                random((1, 2, 2, 3)), random((1, 5, 5, 3)), random((1, 4)), [-1])],
    }


def _bad_dense_bincounts():
    """The negative value in the second row: before 2.16 the original writes outside its output for it."""
    if VERSION < (2, 16):
        return []
    return [lambda: raw("gen_math_ops", "dense_bincount")([[0, 1], [0, -1]], 3, [[1., 2.], [3., 4.]])]


def into_variable(name, *others, **options):
    made = variable(options.get("resource", True))
    with tf.control_dependencies([] if tf1.executing_eagerly() else [made.initializer]):
        return tf.identity(getattr(tf1, name)(made, *others))


def _raised(call, eager):
    """How a call ends: the type of its exception and, told by an op that ran at once, the first line of its words."""
    try:
        if eager:
            call()
        else:
            with tf.Graph().as_default(), tf1.Session() as session:
                session.run(call())
    except tf.errors.InvalidArgumentError as error:
        return "InvalidArgumentError" + (": " + str(error).partition("\n")[0] if eager else "")
    except Exception as error:
        return type(error).__name__
    return "nothing"


def errors():
    faults = []
    for key, calls in _bad_calls().items():
        if key not in KEYS:
            continue
        for number, call in enumerate(calls):
            for eager in (True, False):
                wanted = _raised(call, eager)
                with patched(key):
                    got = _raised(call, eager)
                if got != wanted:
                    faults.append("%s, bad call %d, %s: %s instead of %s" % (
                        key, number, "eager" if eager else "graph", got, wanted))
    return faults


class patched(object):
    def __init__(self, *keys):
        self._keys, self._all = keys, []

    def __enter__(self):
        for key in self._keys or [patch.key for patch in APPLY]:
            self._all.append(Replacements())
            PATCHES[key].install(self._all[-1])
        return self._all

    def __exit__(self, *error):
        for one in reversed(self._all):
            one.restore()


def refused():
    """Scatters into variables, one index of which is out of range: the words say which, and nothing is added twice."""
    rows = np.ones((3, 2), "float32")
    calls = {
        "scatter_add": ([0, 0, 9], rows), "scatter_sub": ([9, 2, 2], rows), "scatter_update": ([1, 1, -3], rows),
        "scatter_nd_add": ([[2], [0], [9]], rows), "scatter_nd_sub": ([[2, 0], [0, 1], [1, 7]], rows[:, 0])}
    faults = []
    for name, arguments in calls.items():
        for resource in (True, False):
            key = "scatter-nd-variable" if "_nd_" in name else "resource-scatter" if resource else "ref-scatter"
            for eager in (True, False) if resource else (False,):
                if key not in KEYS or (eager and VERSION < (2, 0)):
                    continue
                wanted, untouched = _refused(name, arguments, resource, eager), np.ones(6).tolist()
                with patched(key):
                    words, left = _refused(name, arguments, resource, eager)
                if words != wanted[0] or left not in (wanted[1], untouched):
                    faults.append("%s, %s: %s leaves %s instead of %s" % (
                        name, "eager" if eager else "graph", words, left, wanted))
    return faults


def _refused(name, arguments, resource, eager):
    """Which index the words name, and what the variable is then."""
    try:
        if eager:
            made = variable()
            getattr(tf1, name)(made, *arguments)
        with tf.Graph().as_default(), tf1.Session() as session:
            made = variable(resource)
            scattered = getattr(tf1, name)(made, *arguments)
            session.run(made.initializer)
            try:
                session.run(scattered)
            except tf.errors.InvalidArgumentError:
                made = session.run(made)
                raise
    except tf.errors.InvalidArgumentError as error:
        value = made.numpy() if hasattr(made, "numpy") else made
        return re.search(r"indices\[\d+\] = \[?-?\d+(, -?\d+)*", str(error)).group(), value.reshape(-1).tolist()


class gathers_of_a_gpu(object):
    """Where an index is out of range they give zeros, and raise nothing."""

    def __enter__(self):
        self._array_ops = sys.modules["tensorflow.python.ops.array_ops"]
        self._before = self._array_ops.gather, self._array_ops.gather_nd
        self._array_ops.gather = lambda params, indices, **_: self._rows(
            self._before[0], params, np.asarray(indices), lambda tuples: tuples[:, np.newaxis])
        self._array_ops.gather_nd = lambda params, indices, **_: self._rows(
            self._before[1], params, np.asarray(indices), lambda tuples: tuples)

    def _rows(self, gather, params, indices, as_tuples):
        tuples = as_tuples(indices)
        inside = np.logical_and(tuples >= 0, tuples < params.shape.as_list()[:tuples.shape[1]]).all(1)
        rows = gather(params, np.where(inside[:, np.newaxis], tuples, 0).reshape(indices.shape)).numpy()
        rows[~inside] = 0
        return tf.constant(rows)

    def __exit__(self, *error):
        self._array_ops.gather, self._array_ops.gather_nd = self._before


def not_a_number():
    """A GPU cannot raise: an index that the originals' kernels for it find out of range makes its results NaN."""
    calls = {
        "sparse-dense-matmul": lambda: tf.sparse.sparse_dense_matmul(
            tf.SparseTensor([[0, 1], [1, 9], [2, 0]], [1., 1., 1.], [3, 2]), random((2, 2))),
        "sparse-softmax-xent": lambda: tf1.nn.sparse_softmax_cross_entropy_with_logits(
            labels=[0, 7, 1], logits=random((3, 2)))}
    faults = []
    for key in KEYS.intersection(calls):
        with patched(key), gathers_of_a_gpu():
            found = calls[key]().numpy().reshape(3, -1)
        if np.isnan(found).any(1).tolist() != [False, True, False]:
            faults.append("%s: %s" % (key, found.tolist()))
    return faults


def names():
    """What the caller calls the result, and the shape known for it, are the original's."""
    calls = {
        "segment": lambda: tf.math.segment_sum(random((3, 2)), [0, 0, 1], name="given"),
        "unsorted-segment": lambda: tf.math.unsorted_segment_sum(random((3, 2)), [0, 0, 1], 4, name="given"),
        "scatter-nd": lambda: tf.scatter_nd([[0], [1]], random((2, 3)), [4, 3], name="given"),
        "scatter-nd of integers, the original": lambda: tf.scatter_nd([[0], [1]], [1, 2], [4], name="given"),
        "unsorted-segment of integers, the second in a scope": lambda: _second_name(tf.math.unsorted_segment_sum),
        "tensor-scatter-nd": lambda: tf.tensor_scatter_nd_add(random((3, 2)), [[0]], random((1, 2)), name="given"),
        "ref-scatter": lambda: tf1.scatter_add(variable(False), [0, 0], random((2, 2)), name="given"),
        "sparse-dense-matmul": lambda: raw("gen_sparse_ops", "sparse_tensor_dense_mat_mul")(
            np.array([[0, 0]]), [1.], np.array([2, 2]), random((2, 3)), name="given"),
    }
    faults = []
    for label, call in calls.items():
        key = label.split(" ")[0]
        if key not in KEYS:
            continue
        with tf.Graph().as_default():
            old = call()
        with tf.Graph().as_default(), patched(key):
            new = call()
        known = [(one, two) for one, two in zip(old.shape.as_list(), new.shape.as_list()) if one is not None]
        if old.name != new.name or old.shape.ndims != new.shape.ndims or any(one != two for one, two in known):
            faults.append("%s: %s %s instead of %s %s" % (label, new.name, new.shape, old.name, old.shape))
    return faults


def _second_name(function):
    """The original's result after a patched one in the same scope."""
    with tf1.name_scope("Outer"):
        function(random((3, 2)), [0, 0, 1], 4)
        return function(ints(9, (3, 2)), [0, 0, 1], 4)


def putting_back():
    """After restore() every module holds what it held; installing twice does no harm; user's references are named."""
    user = types.ModuleType("users_model")
    user.mine, user.bias = tf.image.adjust_contrast, tf.nn.bias_add
    user.stale = raw("gen_math_ops", "bincount")
    sys.modules["users_model"] = user
    before, faults = _functions(), []
    with patched() as replaced:
        again = Replacements()
        for patch in APPLY:
            patch.install(again)
        if again.places:
            faults.append("installing twice replaces again: %s" % again.places[:3])
        if not all(one.places for one in replaced):
            faults.append("a patch that replaces nothing")
        references = [one.user_references() for one in replaced]
        stale = sorted(set(name for one in references for name in one[0]))
        reached = sorted(set(name for one in references for name in one[1]))
        if stale != ["users_model.stale"]:
            faults.append("stale references: %s" % stale)
        if "users_model.mine" not in reached or ("bias-add" in KEYS) != ("users_model.bias" in reached):
            faults.append("reached references: %s" % reached)
        late = sys.modules["tensorflow.python.ops.math_ops"]
        late.taken_later = raw("gen_math_ops", "bincount")
        new = raw("gen_math_ops", "bincount")
        if new is user.stale or (new.__doc__, new.__name__) != (user.stale.__doc__, user.stale.__name__):
            faults.append("the docstring or the name is gone")
    if late.taken_later is not user.stale:
        faults.append("a reference that was taken later was not put back")
    del late.taken_later
    after = _functions()
    faults += ["not put back: %s.%s" % key for key in before if after.get(key) is not before[key]]
    return faults


def _functions():
    return dict(((name, attribute), value)
                for name, module in list(sys.modules.items())
                if name.startswith(("tensorflow", "keras")) and isinstance(module, types.ModuleType)
                for attribute, value in list(object.__getattribute__(module, "__dict__").items())
                if isinstance(value, types.FunctionType))


def crops():
    """crop_and_resize's image gradient of 2,048 boxes, ten times: TensorFlow's CPU kernel races, the patch does not."""
    r = np.random.RandomState(1)
    image, boxes = r.uniform(size=(1, 16, 16, 4)).astype("float32"), r.uniform(size=(2048, 4)).astype("float32")
    with tf.Graph().as_default(), patched("crop-and-resize"), tf1.Session() as session:
        x = tf.constant(image)
        y = tf1.image.crop_and_resize(x, tf.constant(boxes), tf.zeros([2048], tf.int32), [3, 3])
        gradient = tf1.gradients(y, x, grad_ys=tf.constant(r.uniform(size=(2048, 3, 3, 4)).astype("float32")))[0]
        results = set(session.run(gradient).tobytes() for _ in range(10))
    return [] if len(results) == 1 else ["crop_and_resize gives %d results" % len(results)]


def main():
    asked = json.loads(sys.argv[1])
    wanted = set(asked["order_dependent"])
    if not asked["patched"]:
        print(json.dumps({"structure": structure(wanted), "reach": reach(wanted), "faults": []}))
        return
    faults = []
    with patched():
        found = {"structure": structure(wanted), "reach": reach(wanted)}
    if VERSION < (2, 0):
        # Graphs are built first: eager execution is switched on once, for the rest of the process.
        tf1.enable_eager_execution()
    for check in (errors, refused, not_a_number, names, putting_back, crops):
        faults += ["%s: %s" % (check.__name__, fault) for fault in check()]
    print(json.dumps(dict(found, faults=faults)))


if __name__ == "__main__":
    main()
