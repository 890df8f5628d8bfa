"""Inside a real TensorFlow 2: do replaced ops go with loops, functions, jacobians and forward mode as the originals do?

    python calculus_checks.py        prints one JSON object, {"faults": [...], "compared": n}

Every op is put through every use below, with the originals and with the patches; where the originals get through,
the replaced ops have to, with the same numbers.
"""

import json
import os
import shutil
import tempfile
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tfdeterminism.patches import PATCHES, Replacements  # noqa: E402

VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
tf.get_logger().setLevel("ERROR")


def values(shape):
    """Return random numbers, equal in every call."""
    return np.random.RandomState(3).uniform(0.2, 1, shape).astype("float32")


def functions():
    """Return {name: (function of one tensor, a value for it)}, one for each replaced op."""
    indices = [[0], [2], [0], [3]]
    sparse = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], values((3,)), [3, 4])
    image, filters = values((1, 4, 5, 2)), values((2, 2, 2, 1))
    hot = np.eye(4, dtype="float32")[:3]
    return {
        "segment_sum": (lambda x: tf.math.segment_sum(x, [0, 0, 1, 3]), values((4, 2))),
        "unsorted_segment_sum": (lambda x: tf.math.unsorted_segment_sum(x, [1, 0, 1, 1], 3), values((4, 2))),
        "unsorted_segment_prod": (lambda x: tf.math.unsorted_segment_prod(x, [1, 0, 1, 1], 3), values((4, 2))),
        "gather": (lambda x: tf.gather(x, [1, 1, 0]), values((4, 2))),
        "scatter_nd": (lambda x: tf.scatter_nd(indices, x, [5, 2]), values((4, 2))),
        "tensor_scatter_nd_add": (lambda x: tf.tensor_scatter_nd_add(x, indices, values((4, 2))), values((5, 2))),
        "tensor_scatter_nd_update": (lambda x: tf.tensor_scatter_nd_update(x, indices, values((4, 2))), values((5, 2))),
        "softmax_xent": (lambda x: tf.nn.softmax_cross_entropy_with_logits(hot, x), values((3, 4))),
        "sparse_softmax_xent": (
            lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3, 1], logits=x), values((3, 4))),
        "bias_add": (lambda x: tf.nn.bias_add(values((2, 3, 4)), x), values((4,))),
        "nearest": (lambda x: tf.compat.v1.image.resize_nearest_neighbor(x, [9, 7]), image),
        "bilinear": (lambda x: tf.compat.v1.image.resize_bilinear(x, [9, 7]), image),
        "sparse_dense_matmul": (lambda x: tf.sparse.sparse_dense_matmul(sparse, x), values((4, 2))),
        "depthwise_conv": (lambda x: tf.nn.depthwise_conv2d(image, x, [1, 1, 1, 1], "SAME"), filters),
    }


def gradient(function, x):
    """Return the gradient of the squared result."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x) ** 2
    return tf.convert_to_tensor(tape.gradient(y, x))


def in_a_loop(function, x):
    """Return the gradient of a function through a tf.while_loop."""
    def looped(x):
        start = tf.zeros_like(function(x))
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + function(x * tf.cast(i, x.dtype))),
                             [tf.constant(0), start])[1]
    return tf.function(lambda x: gradient(looped, x))(x)


def twice_through_a_function(function, x):
    """Differentiate a result of tf.function twice, with two tapes outside of it."""
    called = tf.function(function)
    return gradient(lambda x: gradient(called, x), x)


def jacobian(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x)


def jacobian_of_a_function_without_them(function, x):
    """Compute a jacobian without the function; the vectorized loop itself converts IndexedSlices to tensors."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    return tape.jacobian(y, x)


def vectorized(function, x):
    """Map the function over two values with tf.vectorized_map."""
    return tf.vectorized_map(function, tf.stack([x, 2 * x]))


def forward_mode(function, x):
    """Return the derivative in forward mode."""
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = function(x)
    return accumulator.jvp(y)


def forward_over_backward(function, x):
    """Differentiate the gradient in forward mode."""
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        slope = gradient(function, x)
    return accumulator.jvp(slope)


def saved(function, x):
    """Return the gradient of a function that was saved and loaded."""
    module, folder = tf.Module(), tempfile.mkdtemp()
    module.call = tf.function(function, input_signature=[tf.TensorSpec(x.shape, x.dtype)])
    try:
        tf.saved_model.save(module, folder)
        return gradient(tf.saved_model.load(folder).call, x)
    finally:
        shutil.rmtree(folder)


USES = [in_a_loop, twice_through_a_function, jacobian, jacobian_of_a_function_without_them, vectorized, saved]
if hasattr(tf, "autodiff"):
    USES += [forward_mode, forward_over_backward]


def results():
    """Return {use and op: its numbers, or the name of the error}, computed by the ops that are installed now."""
    values = {}
    for name, (function, value) in sorted(functions().items()):
        for use in USES:
            try:
                values[use.__name__ + " " + name] = use(function, tf.constant(value)).numpy()
            except Exception as error:
                values[use.__name__ + " " + name] = "%s: %s" % (type(error).__name__, str(error)[-300:])
    return values


def unconverted(key):
    """Return whether no loop vectorizes the case (docs/how-to/make-a-program-deterministic.md): 64-bit indices."""
    use, name = key.split(" ")
    return VERSION < (2, 1) and (use, name) in (("jacobian", "gather"), ("vectorized", "unsorted_segment_sum"))


def main():
    expected = results()
    for patch in PATCHES.values():
        if patch.applies(VERSION):
            Replacements().install(patch)
    actual, faults, compared = results(), [], 0
    for key, old in expected.items():
        if isinstance(old, str) or unconverted(key):
            continue
        compared += 1
        new = actual[key]
        if isinstance(new, str) or old.shape != new.shape or not np.allclose(old, new, 1e-4, 1e-5):
            faults.append("%s: %s" % (key, new if isinstance(new, str) else "other numbers"))
    print(json.dumps({"faults": faults, "compared": compared}))


if __name__ == "__main__":
    main()
