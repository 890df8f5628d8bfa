"""The gradients of bilinear and nearest-neighbour resizing.

Both resizings are linear and act on rows and columns separately, so a gradient is the transposed interpolation matrix
applied along each axis. The matrix has one or two entries a row: its transposed product is a sum of rows by key. (A
dense product would spread one infinite gradient over the image, and rounds to TensorFloat-32 on newer GPUs.)

without_loops(): whether the graph may have no while loop; then exact_sum adds without rounding, in any order.
by_its_ops: a saved graph is differentiated op by op, not by the gradient function of the replaced op.
"""

from tfdeterminism.patches import exact_sum, reduce
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    constant,
    dims,
    product,
    reshape,
    tensor,
    use_original_unless,
    with_gradient,
    without_loops,
)


def install_bilinear(replacements):
    from tensorflow.python.ops import gen_image_ops
    replacements.replace(gen_image_ops, "resize_bilinear_grad", _bilinear_grad)
    _note_public_callers(replacements, "resize_bilinear")


def install_nearest(replacements):
    from tensorflow.python.ops import gen_image_ops
    replacements.replace(gen_image_ops, "resize_nearest_neighbor_grad", _nearest_grad)
    _note_public_callers(replacements, "resize_nearest_neighbor")


def _note_public_callers(replacements, name):
    from tensorflow.python.ops import gen_image_ops, image_ops
    replacements.note_public_caller(getattr(gen_image_ops, name, None))
    for function in ("resize_images", "resize_images_v2", name):
        replacements.note_public_caller(getattr(image_ops, function, None))


def _bilinear_grad(grads, original_image, align_corners=False, half_pixel_centers=False, name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "ResizeBilinearGrad") as scope:
        grads, image = tensor(grads), tensor(original_image)
        use_original_unless(grads.dtype == dtypes.float32 and image.dtype.is_floating)
        use_original_unless(grads.shape.ndims == 4 and image.shape.ndims == 4)
        size, options = dims(image)[1:3], _options(align_corners, half_pixel_centers)
        # Summed in the type of the result if that is the wider one, else in the gradients' own float32.
        kind = image.dtype if image.dtype == dtypes.float64 else dtypes.float32

        def forward(grads):
            return cast(_transposed(cast(grads, kind), size, _bilinear_weights, options), image.dtype)
        result = _linear(forward, "ResizeBilinearGrad", "resize_bilinear", grads, options)
        result.set_shape([grads.shape[0], image.shape[1], image.shape[2], grads.shape[3]])
        return scope.named(result)


def _nearest_grad(grads, size, align_corners=False, half_pixel_centers=False, name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "ResizeNearestNeighborGrad") as scope:
        grads, size = tensor(grads), tensor(size, dtypes.int32)
        use_original_unless(grads.dtype.is_floating and grads.shape.ndims == 4 and size.shape.is_compatible_with([2]))
        static_size = constant(size)
        height, width = [size[0], size[1]] if static_size is None else [int(n) for n in static_size]
        use_original_unless(static_size is None or (height > 0 and width > 0))
        options = _options(align_corners, half_pixel_centers)

        def forward(grads):
            return _transposed(grads, [height, width], _nearest_weights, options)
        result = _linear(forward, "ResizeNearestNeighborGrad", "resize_nearest_neighbor", grads, options)
        height, width = [None, None] if static_size is None else [height, width]
        result.set_shape([grads.shape[0], height, width, grads.shape[3]])
        return scope.named(result)


def _options(align_corners, half_pixel_centers):
    options = {"align_corners": align_corners}
    if half_pixel_centers:  # not known to 1.13
        options["half_pixel_centers"] = half_pixel_centers
    return options


def _linear(forward, op_type, resize, grads, options):
    """Return forward(grads); its gradient is the resizing itself."""
    from tensorflow.python.ops import array_ops, gen_image_ops

    def gradient(inputs, outputs, image):
        resized = getattr(gen_image_ops, resize)(image, array_ops.shape(inputs[0])[1:3], **options)
        return cast(resized, inputs[0].dtype)
    return with_gradient(op_type, forward, [grads], gradient, by_its_ops=True)


def _transposed(grads, size, weights, options):
    """Return the transposed resizing of grads [B, OH, OW, C], [B, H, W, C]."""
    from tensorflow.python.ops import array_ops
    height, width = size
    rows = _along_first(array_ops.transpose(grads, [1, 0, 2, 3]), height, weights, options)
    columns = _along_first(array_ops.transpose(rows, [2, 1, 0, 3]), width, weights, options)
    return array_ops.transpose(columns, [1, 2, 0, 3])


def _along_first(grads, size, weights, options):
    """Return [size, ...] of [O, ...]: sums of the weighted rows that came from one input position."""
    from tensorflow.python.framework import ops
    output_size, total = dims(grads)[0], None
    for keys, weight in weights(output_size, size, options):
        weight = None if weight is None else reshape(cast(weight, grads.dtype), [output_size, 1, 1, 1])
        # One after another: computed together they need twice the memory.
        with ops.control_dependencies([] if total is None else [total]):
            partial_sum = _sums(grads, keys, size, weight, _longest(output_size, size, **options))
        total = partial_sum if total is None else total + partial_sum
    return total


def _sums(rows, keys, size, weights, longest):
    from tensorflow.python.ops import math_ops
    if longest is not None or not without_loops():
        return reduce.reduce_sorted(rows, keys, size, math_ops.add, longest, weights)
    sizes = dims(rows)
    flat = reshape(rows if weights is None else rows * weights, [sizes[0], product(sizes[1:])])
    addends = exact_sum.Addends.from_rows(flat, keys)
    return reshape(exact_sum.sum_by_key(addends, size), [size] + sizes[1:])


def _longest(output_size, size, align_corners, half_pixel_centers=False):
    """Return an upper limit of the number of outputs that use one input, if the sizes are known.

    They lie in an interval of length 1.
    """
    import numpy as np
    if not (isinstance(output_size, int) and isinstance(size, int)):
        return None
    scale = (size - 1) / max(output_size - 1.0, 1) if align_corners else size / float(max(output_size, 1))
    positions = np.arange(output_size) * scale + (0.5 * scale - 0.5 if half_pixel_centers else 0)
    positions = np.clip(positions, 0, size - 1)
    ends = np.searchsorted(positions, positions + 1.001, "right")  # with a margin for rounding
    counts = ends - np.arange(output_size)
    return int(counts.max()) if output_size else 0


def _bilinear_weights(output_size, size, options):
    """Return, for each output, the two inputs that it mixes: (int64 [O], weights [O]) twice."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    position = _source("resize_bilinear", output_size, size, options)
    share = position - math_ops.floor(position)
    lower = cast(math_ops.floor(position), dtypes.int64)
    return [(lower, 1 - share), (math_ops.minimum(lower + 1, cast(size, dtypes.int64) - 1), share)]


def _nearest_weights(output_size, size, options):
    from tensorflow.python.framework import dtypes
    return [(cast(_source("resize_nearest_neighbor", output_size, size, options), dtypes.int64), None)]


def _source(resize, output_size, size, options):
    """Return the position of each output in the input (float32 [O]), by resizing a ramp.

    The op's own kernel is used: the last bit decides which pixel is nearest, and graph optimizers rewrite divisions.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_image_ops, math_ops
    ramp = reshape(cast(math_ops.range(size), dtypes.float32), [1, size, 1, 1])
    return array_ops.reshape(getattr(gen_image_ops, resize)(ramp, [output_size, 1], **options), [output_size])
