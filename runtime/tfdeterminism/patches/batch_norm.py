"""The gradient of fused_batch_norm with is_training=False: sums over all axes but the channels'.

With is_training=True it is cuDNN's, or TensorFlow's own, and stays so.
"""

from tfdeterminism.patches.common import OpNameScope, cast, reshape, tensor, use_original_unless


def install(replacements):
    from tensorflow.python.ops import gen_nn_ops, nn_impl
    replacements.replace(gen_nn_ops, "fused_batch_norm_grad", _replacement(gen_nn_ops, "FusedBatchNormGrad"))
    replacements.replace(gen_nn_ops, "fused_batch_norm_grad_v2", _replacement(gen_nn_ops, "FusedBatchNormGradV2"))
    replacements.replace(gen_nn_ops, "fused_batch_norm_grad_v3", _replacement(gen_nn_ops, "FusedBatchNormGradV3"))
    replacements.note_public_caller(getattr(nn_impl, "fused_batch_norm", None))


def _replacement(module, op_type):
    # The generated functions return a namedtuple of their own.
    output = getattr(module, "_%sOutput" % op_type, None)
    make = output._make if output is not None else tuple

    def fused_batch_norm_grad(y_backprop, x, scale, reserve_space_1, reserve_space_2, reserve_space_3=None,
                              epsilon=0.0001, data_format="NHWC", is_training=True, name=None):
        use_original_unless(is_training is not None and not is_training)
        with OpNameScope(name, op_type) as scope:
            grad, x, scale, mean, variance = [
                tensor(value) for value in (y_backprop, x, scale, reserve_space_1, reserve_space_2)]
            use_original_unless(grad.dtype == x.dtype and x.shape.ndims in (4, 5) and grad.shape.ndims == x.shape.ndims)
            use_original_unless(grad.shape.is_compatible_with(x.shape) and scale.dtype == mean.dtype == variance.dtype)
            for vector in (scale, mean, variance):
                use_original_unless(vector.shape.ndims in (None, 1))
            return make(scope.named(_gradients(grad, x, scale, mean, variance, epsilon, data_format)))
    return fused_batch_norm_grad


def _gradients(grad, x, scale, mean, variance, epsilon, data_format):
    """Return the gradients to x, scale and offset, and the two empty outputs.

    For a 16-bit x the sums are computed in the type of scale, as in TensorFlow's kernel: that is the type of the
    results.
    """
    from tensorflow.python.ops import array_ops, math_ops
    data_format = data_format.decode() if isinstance(data_format, bytes) else data_format
    rank, channel = x.shape.ndims, 1 if data_format.startswith("NC") else x.shape.ndims - 1
    use_original_unless(data_format in ("NHWC", "NCHW", "NDHWC", "NCDHW"))
    axes = [axis for axis in range(rank) if axis != channel]
    channel_shape = [-1 if axis == channel else 1 for axis in range(rank)]
    inverse = math_ops.rsqrt(variance + epsilon)
    wide_grad, kind = cast(grad, scale.dtype), x.dtype
    to_x = cast(wide_grad * reshape(scale * inverse, channel_shape), kind)
    to_scale = math_ops.reduce_sum(wide_grad * (cast(x, scale.dtype) - reshape(mean, channel_shape)), axes) * inverse
    to_offset = math_ops.reduce_sum(wide_grad, axes)
    to_x.set_shape(x.shape)
    empty = array_ops.zeros([0], scale.dtype)
    return [to_x, to_scale, to_offset, empty, array_ops.identity(empty)]
