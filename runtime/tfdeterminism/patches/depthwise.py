"""depthwise_conv2d's gradient to the filter: for each tap of the filter, the sum of input times gradient."""

from tfdeterminism.patches import chunked
from tfdeterminism.patches.common import (
    OpNameScope,
    dims,
    product,
    reshape,
    tensor,
    use_original_unless,
    with_gradient_of_op,
)


def install(replacements):
    from tensorflow.python.ops import gen_nn_ops, nn_impl, nn_ops
    replacements.replace(gen_nn_ops, "depthwise_conv2d_native_backprop_filter", _backprop_filter)
    replacements.note_public_caller(getattr(nn_ops, "depthwise_conv2d_native", None))
    for name in ("depthwise_conv2d", "depthwise_conv2d_v2", "separable_conv2d", "separable_conv2d_v2"):
        replacements.note_public_caller(getattr(nn_impl, name, None))


def _backprop_filter(input, filter_sizes, out_backprop, strides, padding, explicit_paddings=(), data_format="NHWC",
                     dilations=(1, 1, 1, 1), name=None):
    from tensorflow.python.framework import dtypes, tensor_util
    op_type = "DepthwiseConv2dNativeBackpropFilter"
    with OpNameScope(name, op_type) as scope:
        image, grad, sizes = tensor(input), tensor(out_backprop), tensor(filter_sizes, dtypes.int32)
        data_format, padding = _text(data_format or "NHWC"), _text(padding)
        dilations = [1, 1, 1, 1] if dilations is None else list(dilations)
        use_original_unless(image.dtype.is_floating and image.dtype == grad.dtype)
        use_original_unless(image.shape.ndims == grad.shape.ndims == 4)
        use_original_unless(data_format in ("NHWC", "NCHW") and padding in ("SAME", "VALID", "EXPLICIT"))
        use_original_unless(len(strides) == len(dilations) == 4 and all(n >= 1 for n in list(strides) + dilations))
        shape = tensor_util.constant_value_as_shape(sizes)
        use_original_unless(shape.ndims in (None, 4))
        layout = _Layout(data_format, strides, dilations, padding, explicit_paddings)

        def forward(image, sizes, grad):
            return _filter_gradient(layout, image, sizes, grad)
        attributes = {
            "strides": list(strides), "padding": padding.encode(), "explicit_paddings": list(explicit_paddings or ()),
            "data_format": data_format.encode(), "dilations": dilations, "T": image.dtype}
        result = with_gradient_of_op(op_type, forward, [image, sizes, grad], attributes)
        result.set_shape(shape)
        return scope.named(result)


class _Layout(object):
    """The convolution's attributes, by spatial axis."""

    def __init__(self, data_format, strides, dilations, padding, explicit_paddings):
        self.channels_first = data_format == "NCHW"
        axes = (2, 3) if self.channels_first else (1, 2)
        self.strides = [int(strides[axis]) for axis in axes]
        self.dilations = [int(dilations[axis]) for axis in axes]
        self.padding = padding
        use_original_unless(padding != "EXPLICIT" or len(explicit_paddings) == 8)
        self.before = [int(explicit_paddings[2 * axis]) for axis in axes] if padding == "EXPLICIT" else [0, 0]

    def channels_last(self, value):
        from tensorflow.python.ops import array_ops
        return array_ops.transpose(value, [0, 2, 3, 1]) if self.channels_first else value

    def padded(self, image, taps, output_sizes):
        """Return the image, padded by what the filter reads beyond its borders."""
        from tensorflow.python.ops import array_ops, math_ops
        borders = [[0, 0]]
        for axis in (0, 1):
            size = dims(image)[1 + axis]
            reach = (output_sizes[axis] - 1) * self.strides[axis] + (taps[axis] - 1) * self.dilations[axis] + 1
            padding_before = self.before[axis]
            if self.padding == "SAME":
                padding_before = math_ops.maximum(reach - size, 0) // 2
            borders.append([padding_before, math_ops.maximum(reach - size - padding_before, 0)])
        return array_ops.pad(image, borders + [[0, 0]])


def _filter_gradient(layout, image, sizes, grad):
    """Return the gradient to the filter: the sum over the batch, some images at a time."""
    from tensorflow.python.framework import tensor_util
    from tensorflow.python.ops import array_ops
    image, grad = layout.channels_last(image), layout.channels_last(grad)
    static_sizes = tensor_util.constant_value_as_shape(sizes).with_rank(4).as_list()
    height, width, multiplier = [sizes[i] if static_sizes[i] is None else static_sizes[i] for i in (0, 1, 3)]

    def add_chunk(sum_so_far, *chunk):
        images, grads = [chunked.chunk_of(value)(*chunk) for value in (image, grad)]
        gradient = _gradient_of_images(layout, [height, width, multiplier], images, grads)
        return [gradient if sum_so_far is None else sum_so_far[0] + gradient]

    def start():
        return [array_ops.zeros(array_ops.stack([height * width, dims(image)[3], multiplier]), grad.dtype)]
    result = chunked.map_chunks(dims(grad)[0], product(dims(image)[1:]), add_chunk, start)[0]
    return array_ops.reshape(result, sizes)


def _gradient_of_images(layout, sizes, image, grad):
    """Return the gradient of some images to the filter, [height * width, depth, multiplier]."""
    from tensorflow.python.ops import array_ops, math_ops
    height, width, multiplier = sizes
    out, depth, points = dims(grad)[1:3], dims(image)[3], product(dims(grad)[:3])
    padded = layout.padded(image, [height, width], out)
    grad = reshape(grad, [points, depth, multiplier])

    def tap(row, column):
        """The sum over all points of (input under this tap of the filter) * gradient: [depth, multiplier]."""
        starts = [row * layout.dilations[0], column * layout.dilations[1]]
        stops = [starts[i] + (out[i] - 1) * layout.strides[i] + 1 for i in (0, 1)]
        window = padded[:, starts[0]:stops[0]:layout.strides[0], starts[1]:stops[1]:layout.strides[1], :]
        return math_ops.reduce_sum(reshape(window, [points, depth, 1]) * grad, 0)

    if isinstance(height, int) and isinstance(width, int):
        gradients = [array_ops.expand_dims(tap(row, column), 0) for row in range(height) for column in range(width)]
        return array_ops.concat(gradients, 0) if gradients else array_ops.zeros([0, depth, multiplier], grad.dtype)
    taps = math_ops.range(height * width)
    return _map(lambda index: tap(index // width, index % width), taps, grad.dtype)


def _map(function, values, dtype):
    try:
        from tensorflow.python.ops import map_fn
    except ImportError:  # 1.13
        from tensorflow.python.ops import functional_ops as map_fn
    return map_fn.map_fn(function, values, dtype=dtype)


def _text(value):
    return value.decode() if isinstance(value, bytes) else value
