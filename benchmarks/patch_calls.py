"""The calls by which replaced ops are measured, at real and at minimal sizes."""

import numpy as np
import tensorflow as tf
from measured_case import Case, tf1

RANDOM = np.random.RandomState(7)


def raw(module, name):
    """Return a generated function of TensorFlow, patched or not."""
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def real(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def ints(high, *shape):
    return RANDOM.randint(0, high, shape).astype("int32")


def sizes(large, small, make):
    """Return a function inputs(is_small) that calls make(*large) or make(*small)."""
    return lambda is_small: make(*(small if is_small else large))


def cases():
    return [*reductions(), *scatters(), *images(), *losses(), *other_cases()]


def reductions():
    def rows(many, width, count):
        return [real(many, width), np.append(ints(count, many - 1), count - 1).astype("int32")]

    def ascending(*dimensions):
        data, ids = rows(*dimensions)
        return [data, np.sort(ids)]

    def gather_gradient(params, ids, gradient):
        return tf1.gradients(tf.gather(params, ids), params, [gradient])

    large, small = (1000000, 64, 2000), (6, 2, 3)
    cells = (1000000, 50000, 64)
    return [
        Case(
            "segment",
            "SegmentSum",
            "segment_sum of 1000000x64 to 2000",
            sizes(large, small, ascending),
            lambda d, i: raw("gen_math_ops", "segment_sum")(d, i),
        ),
        Case(
            "unsorted-segment",
            "UnsortedSegmentSum",
            "unsorted_segment_sum of 1000000x64 to 2000",
            sizes(large, small, rows),
            lambda d, i: raw("gen_math_ops", "unsorted_segment_sum")(d, i, int(large[2]) if d.shape[0] > 6 else 3),
        ),
        Case(
            "unsorted-segment",
            "UnsortedSegmentSum",
            "gradient of gather, 65536 rows of 50000x256",
            lambda small: [real(50000, 256), ints(50000, 65536), real(65536, 256)],
            gather_gradient,
            eager=False,
        ),
        Case(
            "bincount",
            "Bincount",
            "bincount of 10000000 weights, 1000 bins",
            sizes((10000000,), (6,), lambda many: [ints(1000, many), real(many)]),
            lambda i, w: raw("gen_math_ops", "bincount")(i, 1000, w),
        ),
        Case(
            "sparse-dense-matmul",
            "SparseTensorDenseMatMul",
            "sparse_dense_matmul of 1000000 non-zeros in 50000x50000 by 50000x64",
            sizes(
                cells,
                (6, 3, 2),
                lambda many, edge, width: [np.unique(ints(edge, many, 2), axis=0).astype("int64"), real(edge, width)],
            ),
            lambda at, b: raw("gen_sparse_ops", "sparse_tensor_dense_mat_mul")(
                at, tf.ones([at.shape[0]]) * 0.3, np.array([int(b.shape[0])] * 2), b
            ),
        ),
    ]


def scatters():
    def updates(many, count, width):
        return [ints(count, many, 1), real(many, width)]

    def onto(*dimensions):
        return [*updates(*dimensions), real(dimensions[1], dimensions[2])]

    def into_variable(name, resource, nested):
        def call(indices, updates):
            initial = np.zeros((50000, int(updates.shape[1])), "float32")
            variable = tf1.get_variable(name, initializer=initial, use_resource=resource)
            update = getattr(tf1, name)(variable, indices if nested else indices[:, 0], updates)
            with tf.control_dependencies([update]):
                return tf.identity(variable[:1])

        return call

    large, small = (200000, 50000, 64), (6, 3, 2)
    size = "200000 rows into 50000x64"
    return [
        Case(
            "scatter-nd",
            "ScatterNd",
            "scatter_nd, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "scatter_nd")(i, u, [int(n) for n in t.shape]),
        ),
        Case(
            "tensor-scatter-nd",
            "TensorScatterAdd",
            "tensor_scatter_nd_add, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "tensor_scatter_add")(t, i, u),
        ),
        Case(
            "tensor-scatter-nd",
            "TensorScatterUpdate",
            "tensor_scatter_nd_update, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "tensor_scatter_update")(t, i, u),
        ),
        Case(
            "resource-scatter",
            "ResourceScatterAdd",
            "scatter_add, resource variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_add", True, False),
            eager=False,
            kept=True,
        ),
        Case(
            "ref-scatter",
            "ScatterAdd",
            "scatter_add, reference variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_add", False, False),
            eager=False,
            kept=True,
        ),
        Case(
            "scatter-nd-variable",
            "ResourceScatterNdAdd",
            "scatter_nd_add, resource variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_nd_add", True, True),
            eager=False,
            kept=True,
        ),
    ]


def images():
    def resized(batch, edge, depth):
        return [real(batch, 2 * edge, 2 * edge, depth), real(batch, edge, edge, depth)]

    def crops(many, edge, depth, size):
        boxes = np.sort(RANDOM.uniform(0, 1, (many, 2, 2)), axis=1).reshape(many, 4).astype("float32")
        return [real(many, edge, edge, depth), boxes, ints(4, many), real(4, size, size, depth)]

    large, small = (8, 64, 64), (1, 2, 1)
    many = (64, 28, 256, 64), (2, 2, 1, 4)
    return [
        Case(
            "resize-bilinear",
            "ResizeBilinearGrad",
            "gradient of resizing 8x64x64x64 to 128x128",
            sizes(large, small, resized),
            lambda g, x: raw("gen_image_ops", "resize_bilinear_grad")(g, x),
        ),
        Case(
            "resize-nearest",
            "ResizeNearestNeighborGrad",
            "gradient of resizing 8x64x64x64 to 128x128",
            sizes(large, small, resized),
            lambda g, x: raw("gen_image_ops", "resize_nearest_neighbor_grad")(g, [int(n) for n in x.shape[1:3]]),
        ),
        Case(
            "crop-and-resize",
            "CropAndResizeGradImage",
            "gradient to the image of 64 crops of 28x28x256 from 64x64",
            sizes(*many, make=crops),
            lambda g, b, i, x: raw("gen_image_ops", "crop_and_resize_grad_image")(
                g, b, i, [int(n) for n in x.shape], tf.float32
            ),
        ),
        Case(
            "crop-and-resize",
            "CropAndResizeGradBoxes",
            "gradient to the boxes of 64 crops of 28x28x256 from 64x64",
            sizes(*many, make=crops),
            lambda g, b, i, x: raw("gen_image_ops", "crop_and_resize_grad_boxes")(g, x, b, i),
        ),
        Case(
            "adjust-contrast",
            "AdjustContrastv2",
            "16x224x224x3",
            sizes((16, 224), (1, 2), lambda many, edge: [real(many, edge, edge, 3)]),
            lambda x: raw("gen_image_ops", "adjust_contrastv2")(x, 1.5),
        ),
    ]


def losses():
    def labelled(many, classes):
        return [real(many, classes), ints(classes, many)]

    def hot(many, classes):
        return [real(many, classes), np.eye(classes, dtype="float32")[ints(classes, many)]]

    large, small = (4096, 1000), (2, 3)
    return [
        Case(
            "softmax-xent",
            "SoftmaxCrossEntropyWithLogits",
            "4096x1000",
            sizes(large, small, hot),
            lambda x, y: list(raw("gen_nn_ops", "softmax_cross_entropy_with_logits")(x, y)),
        ),
        Case(
            "sparse-softmax-xent",
            "SparseSoftmaxCrossEntropyWithLogits",
            "4096x1000",
            sizes(large, small, labelled),
            lambda x, y: list(raw("gen_nn_ops", "sparse_softmax_cross_entropy_with_logits")(x, y)),
        ),
    ]


def other_cases():
    def channels(batch, edge, depth):
        return [real(batch, edge, edge, depth), real(batch, edge, edge, depth), 1 + real(depth) ** 2]

    def filtered(batch, edge, depth):
        return [real(batch, edge, edge, depth), real(batch, edge, edge, depth)]

    large, small = (32, 56, 64), (1, 2, 1)
    return [
        Case(
            "bias-add",
            "BiasAddGrad",
            "gradient to the bias of 32x56x56x64",
            sizes(large, small, filtered),
            lambda g, x: raw("gen_nn_ops", "bias_add_grad")(g),
        ),
        Case(
            "fused-batch-norm-inference",
            "FusedBatchNormGrad",
            "gradients of 32x56x56x64",
            sizes(large, small, channels),
            lambda g, x, s: list(raw("gen_nn_ops", "fused_batch_norm_grad")(g, x, s, s, s, is_training=False))[:3],
        ),
        Case(
            "depthwise-conv-filter",
            "DepthwiseConv2dNativeBackpropFilter",
            "gradient to 3x3 filters of 16x56x56x64",
            sizes((16, 56, 64), small, filtered),
            lambda g, x: raw("gen_nn_ops", "depthwise_conv2d_native_backprop_filter")(
                x, [3, 3, int(x.shape[3]), 1], g, [1, 1, 1, 1], "SAME"
            ),
        ),
    ]
