"""Forward and backward calls of every replaced op."""

import tensorflow as tf
from patches_base_checks import KEYS, VERSION, grad, ints, random, raw, tf1, variable

from tfdeterminism.patches import PATCHES


def scenarios():
    """Return [("KEY NUMBER" of a patch, function that builds tensors)]; grad() differentiates to every input."""
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
    """Return [a call of tf.math.bincount]; [] where it uses unsorted_segment_sum, which is deterministic there."""
    if (2, 7) <= VERSION < (2, 12):
        return []
    return [lambda: [tf.math.bincount([1, 2, 1], weights=random((3,)), minlength=3, maxlength=3)]]


def into_rows(name, variable, *arguments):
    """Call an op that scatters into rows of a variable."""
    return raw("gen_resource_variable_ops", name)(variable.handle, *arguments)


def embedding_loss(variable):
    return tf.reduce_sum(tf.nn.embedding_lookup(variable, [1, 1, 0]) ** 2)


def keras_descent(variable):
    return tf.keras.optimizers.SGD(0.1).get_updates(embedding_loss(variable), [variable])
