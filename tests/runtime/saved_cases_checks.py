"""Functions of one tensor to save: of each replaced op, in loops and branches."""

import numpy as np
import tensorflow as tf
from saved_base_checks import ALL, tf1, values

# Cases that are built for an unknown first dimension, too: patches then use other ops.
OF_ANY_SIZE = ("segment_sum", "unsorted_segment_prod", "scatter_nd", "sparse_softmax_xent", "sparse_dense_matmul",
               "nearest backprop", "in a loop")
# Cases that run only with TFDET_TESTS=all (ALL): other cases are of the same kind.
ONLY_WITH_ALL = ("segment_sum of any size", "unsorted_segment_prod of any size", "in a loop of any size",
                 "sparse_dense_matmul of any size",
                 "segment_prod", "unsorted_segment_mean", "tensor_scatter_nd_add", "softmax_xent to labels",
                 "sparse_dense_matmul adjoint", "bilinear backprop")


def sparse(x, **options):
    matrix = tf.SparseTensor(np.array([[0, 1], [1, 0], [1, 2]], np.int64), values((3,)), [3, 4])
    return tf.sparse.sparse_dense_matmul(matrix, x, **options)


def sparse_values(x):
    matrix = tf.SparseTensor(np.array([[0, 1], [1, 0], [1, 2]], np.int64), x, [3, 4])
    return tf.sparse.sparse_dense_matmul(matrix, values((4, 2)))


def sparse_found(x):
    """Multiply by a sparse matrix whose number of elements is known only at run time."""
    indices = tf.where(x > 0.5)
    matrix = tf.SparseTensor(indices, tf.gather_nd(x, indices), [4, 2])
    return tf.sparse.sparse_dense_matmul(matrix, values((2, 3)))


def resized(resize, size):
    """Return the gradient of a resize, which is what the patch replaces."""
    return lambda x: gradient_of(lambda image: resize(image, [4, 3]), tf.zeros([1] + size + [2]), x)


def cropped(x):
    return gradient_of(lambda image: tf.image.crop_and_resize(image, [[0.1, 0.2, 0.8, 0.7]], [0], [3, 2]),
                       values((1, 4, 5, 2)), x)


def cropped_at(boxes):
    return tf.image.crop_and_resize(values((1, 4, 5, 2)), boxes, [0], [3, 2])


def normalized(x):
    """Return the gradient of a batch normalization in inference mode."""
    def normal(scale):
        return tf1.nn.fused_batch_norm(x, scale, [0.0, 0.1], [0.5, 0.6], [1.0, 1.1], is_training=False)[0]
    return gradient_of(normal, tf.ones([2]), values((1, 4, 5, 2)))


def gradient_of(function, point, upstream):
    """Build a gradient into the current graph, so that it is saved."""
    point = tf.convert_to_tensor(point)
    return tf.convert_to_tensor(tf1.gradients(function(point), point, grad_ys=upstream)[0])


def looped(x):
    """Run a replaced op in a loop."""
    def body(i, y):
        return i + 1, y + tf.math.unsorted_segment_sum(x * y[:, :1], [1, 0, 1, 1], 4)
    return tf1.while_loop(lambda i, y: i < 3, body, [tf.constant(0), tf.ones_like(x)])[1]


def branched(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: tf.scatter_nd([[0], [2], [0], [3]], x * x, [5, 2]),
                    lambda: tf.zeros([5, 2]))


def after_something(x):
    """The replacement must keep the op's control dependencies."""
    with tf.control_dependencies([tf1.assert_greater(tf.reduce_sum(x), -1.0)]):
        return tf.math.unsorted_segment_sum(x * 2.0, [1, 0, 1, 1], 3)


def cases():
    """Return {name: (function of one tensor, a value for it)}."""
    indices, hot = [[0], [2], [0], [3]], np.eye(4, dtype="float32")[:3]
    rows, image = values((4, 2)), values((1, 4, 5, 2))
    m, n = tf.math, tf.nn
    return {
        "segment_sum": (lambda x: m.segment_sum(x, [0, 0, 1, 3]), rows),
        "segment_prod": (lambda x: m.segment_prod(x, [0, 0, 1, 3]), rows),
        "unsorted_segment_sum": (lambda x: m.unsorted_segment_sum(x, [1, 0, -1, 1], 3), rows),
        "unsorted_segment_prod": (lambda x: m.unsorted_segment_prod(x, [1, 0, 1, 1], 3), rows),
        "unsorted_segment_mean": (lambda x: m.unsorted_segment_mean(x, [1, 0, 1, 1], 3), rows),
        "gather backprop": (lambda x: gradient_of(lambda table: tf.gather(table, [1, 1, 0, 2]) ** 2, x, rows), rows),
        "scatter_nd": (lambda x: tf.scatter_nd(indices, x, [5, 2]), rows),
        "tensor_scatter_nd_add": (lambda x: tf.tensor_scatter_nd_add(x, indices, rows), values((5, 2))),
        "tensor_scatter_nd_add of": (lambda x: tf.tensor_scatter_nd_add(values((5, 2)), indices, x), rows),
        "tensor_scatter_nd_sub of": (lambda x: tf.tensor_scatter_nd_sub(values((5, 2)), indices, x), rows),
        "tensor_scatter_nd_update": (lambda x: tf.tensor_scatter_nd_update(x, indices[1:], rows[1:]), values((5, 2))),
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


def all_cases():
    """Return (name, function, value, static shape) of all cases."""
    for name, (function, value) in sorted(cases().items()):
        shapes = [(name, list(value.shape))]
        if name in OF_ANY_SIZE:
            shapes.append((name + " of any size", [None] + list(value.shape[1:])))
        for name, shape in shapes:
            if ALL or name not in ONLY_WITH_ALL:
                yield name, function, value, shape
