"""softmax_cross_entropy_with_logits and its sparse form, by log_softmax, whose kernels add in a fixed order.

Both outputs of the fused op are computed, the loss and its gradient, and differentiated as TensorFlow differentiates
the fused op: the gradient to the logits is softmax - labels also where the labels do not sum to one.
"""

import collections

from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    check_at_run_time,
    select,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)

_Output = collections.namedtuple("SoftmaxCrossEntropyWithLogits", ["loss", "backprop"])  # type: ignore[name-match]  # TensorFlow's name


def install_dense(replacements):
    from tensorflow.python.ops import gen_nn_ops
    replacements.replace(gen_nn_ops, "softmax_cross_entropy_with_logits", _dense)
    _note_callers(replacements, "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2",
                  "softmax_cross_entropy_with_logits_v2_helper")


def install_sparse(replacements):
    from tensorflow.python.ops import gen_nn_ops
    replacements.replace(gen_nn_ops, "sparse_softmax_cross_entropy_with_logits", _sparse)
    _note_callers(replacements, "sparse_softmax_cross_entropy_with_logits",
                  "sparse_softmax_cross_entropy_with_logits_v2")


def _note_callers(replacements, *names):
    from tensorflow.python.ops import nn_ops
    for name in names:
        replacements.note_public_caller(getattr(nn_ops, name, None))


def _dense(features, labels, name=None):
    op_type = "SoftmaxCrossEntropyWithLogits"
    with OpNameScope(name, op_type) as scope:
        features, labels = tensor(features), tensor(labels)
        use_original_unless(features.dtype.is_floating and features.dtype == labels.dtype)
        use_original_unless(features.shape.ndims in (None, 2) and labels.shape.ndims in (None, 2))
        shape = _broadcast(features.shape, labels.shape)
        loss, backprop = with_gradient_of_op(op_type, _dense_outputs, [features, labels])
        loss.set_shape(shape[:1])
        backprop.set_shape(shape)
        return _Output(*scope.named([loss, backprop]))


def _dense_outputs(features, labels):
    from tensorflow.python.ops import array_ops, math_ops, nn_ops
    if not (features.shape.is_fully_defined() and labels.shape.is_fully_defined()):
        features = check_at_run_time(features, _broadcastable(features, labels),
                                     "logits and labels must be broadcastable: logits_size=", array_ops.shape(features),
                                     "labels_size=", array_ops.shape(labels))
    if not (features.shape.is_fully_defined() and features.shape.as_list() == labels.shape.as_list()):
        features, labels = features + array_ops.zeros_like(labels), labels + array_ops.zeros_like(features)
    loss = -math_ops.reduce_sum(labels * nn_ops.log_softmax(features), -1)
    return loss, nn_ops.softmax(features) - labels


def _broadcastable(first, second):
    """Return whether both are matrices whose sizes can be broadcast."""
    from tensorflow.python.ops import array_ops, math_ops
    pairs = [array_ops.concat([array_ops.shape(value), [0, 0]], 0)[:2] for value in (first, second)]
    matrices = math_ops.logical_and(*[math_ops.equal(array_ops.rank(value), 2) for value in (first, second)])
    fit = math_ops.logical_or(math_ops.equal(*pairs), math_ops.equal(math_ops.minimum(*pairs), 1))
    return math_ops.logical_and(matrices, math_ops.reduce_all(fit))


def _broadcast(first, second):
    from tensorflow.python.framework import common_shapes, tensor_shape
    if first.ndims is None or second.ndims is None:
        return tensor_shape.TensorShape([None, None])
    try:
        return common_shapes.broadcast_shape(first, second)
    except ValueError:
        use_original_unless(False)


def _sparse(features, labels, name=None):
    op_type = "SparseSoftmaxCrossEntropyWithLogits"
    with OpNameScope(name, op_type) as scope:
        features, labels = tensor(features), tensor(labels)
        use_original_unless(features.dtype.is_floating and labels.dtype.is_integer)
        use_original_unless(features.shape.ndims in (None, 2) and labels.shape.ndims in (None, 1))
        if features.shape.ndims is not None and labels.shape.ndims is not None:
            use_original_unless(features.shape[:1].is_compatible_with(labels.shape))
        use_original_unless(features.shape.ndims is None or features.shape.as_list()[1] != 0)
        loss, backprop = with_gradient_of_op(op_type, _sparse_outputs, [features, labels])
        loss.set_shape(labels.shape)
        backprop.set_shape(features.shape)
        return _Output(*scope.named([loss, backprop]))


def _sparse_outputs(features, labels):
    """Return loss and gradient; for a label out of range a CPU raises in gather_nd and a GPU returns NaN.

    The fused op does the same.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops, nn_ops
    features, labels = _check_shapes(features, cast(labels, dtypes.int64))
    shape = array_ops.shape(features, out_type=dtypes.int64)
    count, classes = shape[0], shape[1]
    valid = math_ops.logical_and(labels >= 0, labels < classes)
    places = array_ops.concat([array_ops.expand_dims(vector, 1) for vector in (math_ops.range(count), labels)], 1)
    log_probabilities = array_ops.gather_nd(nn_ops.log_softmax(features), places)
    one_hot = array_ops.one_hot(labels, cast(classes, dtypes.int32), dtype=features.dtype)
    undefined = cast(float("nan"), features.dtype)
    loss = select(valid, -log_probabilities, array_ops.zeros_like(log_probabilities) + undefined)
    backprop = nn_ops.softmax(features) - one_hot
    return loss, select(valid, backprop, array_ops.zeros_like(backprop) + undefined)


def _check_shapes(features, labels):
    """Return both, after checks at run time of their ranks and of one label for each row."""
    from tensorflow.python.ops import array_ops, math_ops
    if features.shape.is_fully_defined() and labels.shape.is_fully_defined():
        return features, labels
    shape, count = array_ops.shape(features), array_ops.shape(labels)
    features = check_at_run_time(features, math_ops.equal(array_ops.rank(features), 2),
                                 "logits must be 2-D, but got shape", shape)
    labels = check_at_run_time(labels, math_ops.equal(array_ops.rank(labels), 1),
                               "labels must be 1-D, but got shape", count)
    labels = check_at_run_time(labels, math_ops.equal(array_ops.shape(features)[0], array_ops.size(labels)),
                               "logits and labels must have the same first dimension, got logits shape", shape,
                               "and labels shape", count)
    return features, labels
