"""bias_add's gradient: a sum over all axes but the channels', instead of BiasAddGrad's atomic adds.

bias_add itself stays TensorFlow's own op, with its checks, names, shapes and formats.
"""

from tfdeterminism.patches.common import OpNameScope, select, tensor, use_original_unless


def install(replacements):
    from tensorflow.python.ops import gen_nn_ops, nn_ops
    replacements.replace(gen_nn_ops, "bias_add_grad", _bias_add_grad)
    for name in ("bias_add", "bias_add_v1"):
        replacements.note_public_caller(getattr(nn_ops, name, None))


def _bias_add_grad(out_backprop, data_format="NHWC", name=None):
    from tensorflow.python.ops import array_ops, math_ops
    with OpNameScope(name, "BiasAddGrad") as scope:
        grad = tensor(out_backprop)
        data_format = data_format.decode() if isinstance(data_format, bytes) else data_format
        channels_first = data_format == "NCHW"
        use_original_unless(data_format in ("NHWC", "NCHW", None) and (grad.dtype.is_floating or grad.dtype.is_complex))
        rank = grad.shape.ndims
        use_original_unless(rank is None or rank >= (3 if channels_first else 2))
        if rank is None:
            axes = math_ops.range(array_ops.rank(grad) - 1)
            axes = select(axes > 0, axes + 1, axes) if channels_first else axes
        else:
            axes = [0] + list(range(2, rank)) if channels_first else list(range(rank - 1))
        result = math_ops.reduce_sum(grad, axes)
        result.set_shape([None] if rank is None else [grad.shape.as_list()[1 if channels_first else -1]])
        return scope.named(result)
