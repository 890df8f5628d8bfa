"""Replaced ops reject the same wrong arguments as the original ops."""

import numpy as np
import tensorflow as tf
from patches_base_checks import KEYS, VERSION, grad, patched, random, raw, tf1, variable


def _bad_calls():
    """Return {patch key: calls that the original op rejects}."""
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
    """The negative value is in the second row: before 2.16 the original then writes out of bounds."""
    if VERSION < (2, 16):
        return []
    return [lambda: raw("gen_math_ops", "dense_bincount")([[0, 1], [0, -1]], 3, [[1., 2.], [3., 4.]])]


def into_variable(name, *arguments, **options):
    """Scatter into a fresh variable; return its value."""
    target = variable(options.get("resource", True))
    with tf.control_dependencies([] if tf1.executing_eagerly() else [target.initializer]):
        return tf.identity(getattr(tf1, name)(target, *arguments))


def _raised(call, eager):
    """Return the type of the exception and, for an op that ran eagerly, the first line of its message."""
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


def error_differences():
    """Return how the errors of replaced ops differ from those of the originals, as text."""
    faults = []
    for key, calls in _bad_calls().items():
        if key not in KEYS:
            continue
        for number, call in enumerate(calls):
            for eager in (True, False):
                expected = _raised(call, eager)
                with patched(key):
                    actual = _raised(call, eager)
                if actual != expected:
                    faults.append("%s, bad call %d, %s: %s instead of %s" % (
                        key, number, "eager" if eager else "graph", actual, expected))
    return faults
