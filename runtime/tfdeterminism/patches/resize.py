"""Gradients of bilinear and nearest-neighbour resizing.

Both resizings are linear and act on rows and columns separately, so a gradient is the transposed interpolation matrix
applied along each axis.  The matrix has one or two entries a row, in ascending columns: its transposed product is a
sum over runs of neighbours.  (A dense product would spread one infinite gradient over the image, and rounds to
TensorFloat-32 on newer GPUs.)
"""

from tfdeterminism.patches import reduce
from tfdeterminism.patches.common import Scope, cast, constant, dims, need, reshape, select, tensor, unrecorded


def install_bilinear(session):
    from tensorflow.python.ops import gen_image_ops
    session.replace(gen_image_ops, "resize_bilinear_grad", _bilinear_grad)
    _reach(session, "resize_bilinear")


def install_nearest(session):
    from tensorflow.python.ops import gen_image_ops
    session.replace(gen_image_ops, "resize_nearest_neighbor_grad", _nearest_grad)
    _reach(session, "resize_nearest_neighbor")


def _reach(session, name):
    from tensorflow.python.ops import gen_image_ops, image_ops
    session.reaches(getattr(gen_image_ops, name, None))
    for function in ("resize_images", "resize_images_v2", name):
        session.reaches(getattr(image_ops, function, None))


def _bilinear_grad(grads, original_image, align_corners=False, half_pixel_centers=False, name=None):
    from tensorflow.python.framework import dtypes
    with Scope(name, "ResizeBilinearGrad") as scope:
        grads, image = tensor(grads), tensor(original_image)
        need(grads.dtype == dtypes.float32 and image.dtype.is_floating)
        need(grads.shape.ndims == 4 and image.shape.ndims == 4)
        size = dims(image)[1:3]
        # Summed in the type of the result if that is the wider one, else in the gradients' own float32.
        kind = image.dtype if image.dtype == dtypes.float64 else dtypes.float32

        def forward(grads):
            return cast(_transposed(cast(grads, kind), size, _bilinear_weights, align_corners, half_pixel_centers),
                        image.dtype)
        result = _linear(forward, "resize_bilinear", grads, align_corners, half_pixel_centers)
        result.set_shape([grads.shape[0], image.shape[1], image.shape[2], grads.shape[3]])
        return scope.named(result)


def _nearest_grad(grads, size, align_corners=False, half_pixel_centers=False, name=None):
    from tensorflow.python.framework import dtypes
    with Scope(name, "ResizeNearestNeighborGrad") as scope:
        grads, size = tensor(grads), tensor(size, dtypes.int32)
        need(grads.dtype.is_floating and grads.shape.ndims == 4 and size.shape.is_compatible_with([2]))
        known = constant(size)
        height, width = [size[0], size[1]] if known is None else [int(n) for n in known]
        need(known is None or (height > 0 and width > 0))

        def forward(grads):
            return _transposed(grads, [height, width], _nearest_weights, align_corners, half_pixel_centers)
        result = _linear(forward, "resize_nearest_neighbor", grads, align_corners, half_pixel_centers)
        height, width = [None, None] if known is None else [height, width]
        result.set_shape([grads.shape[0], height, width, grads.shape[3]])
        return scope.named(result)


def _linear(forward, resize, grads, align_corners, half_pixel_centers):
    """forward(grads), whose own gradient is the resizing itself."""
    from tensorflow.python.ops import array_ops, custom_gradient, gen_image_ops
    options = {"align_corners": align_corners}
    if half_pixel_centers:  # not known to 1.13
        options["half_pixel_centers"] = half_pixel_centers

    @custom_gradient.custom_gradient
    def call(grads):
        with unrecorded():
            result = forward(grads)

        def gradient(image):
            return cast(getattr(gen_image_ops, resize)(image, array_ops.shape(grads)[1:3], **options), grads.dtype)
        return result, gradient
    return call(grads)


def _transposed(grads, size, weights, align_corners, half_pixel_centers):
    """The transposed resizing of grads [B, OH, OW, C] to [B, H, W, C]."""
    from tensorflow.python.ops import array_ops
    height, width = size
    rows = _along_first(array_ops.transpose(grads, [1, 0, 2, 3]), height, weights, align_corners, half_pixel_centers)
    columns = _along_first(array_ops.transpose(rows, [2, 1, 0, 3]), width, weights, align_corners, half_pixel_centers)
    return array_ops.transpose(columns, [1, 2, 0, 3])


def _along_first(grads, size, weights, align_corners, half_pixel_centers):
    """[O, ...] to [size, ...]: sums of the weighted rows that came from one input position."""
    from tensorflow.python.ops import math_ops
    many = dims(grads)[0]
    total = None
    for keys, weight in weights(many, size, align_corners, half_pixel_centers):
        rows = grads
        if weight is not None:
            rows = grads * reshape(cast(weight, grads.dtype), [many, 1, 1, 1])
        part, _ = reduce.sorted_runs(rows, keys, size, math_ops.add, 0, _longest(many, size))
        total = part if total is None else total + part
    return total


def _longest(many, size):
    """A bound on how many outputs take one input: runs at the borders are up to 1.5 times the scale."""
    if not (isinstance(many, int) and isinstance(size, int)):
        return None
    return min(many, 2 * -(-many // max(size, 1)) + 2)


def _bilinear_weights(many, size, align_corners, half_pixel_centers):
    """For each output, the two inputs it mixes: (int64 [O], weights [O]) twice."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    place = _source(many, size, align_corners, half_pixel_centers, 0.5)
    below, last = math_ops.floor(place), cast(size, dtypes.int64) - 1
    share = place - below
    lower = math_ops.maximum(cast(below, dtypes.int64), 0)
    upper = math_ops.minimum(cast(math_ops.ceil(place), dtypes.int64), last)
    return [(math_ops.minimum(lower, last), 1 - share), (math_ops.maximum(upper, 0), share)]


def _nearest_weights(many, size, align_corners, half_pixel_centers):
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    place = _source(many, size, align_corners, half_pixel_centers, 0.)
    place = math_ops.floor(place + 0.5) if align_corners else math_ops.floor(place)
    return [(math_ops.maximum(math_ops.minimum(cast(place, dtypes.int64), cast(size, dtypes.int64) - 1), 0), None)]


def _source(many, size, align_corners, half_pixel_centers, centre):
    """Where in the input each output position lies, in float32 as TensorFlow's kernels compute it."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import math_ops
    outputs = cast(math_ops.range(many), dtypes.float32)
    above, below = cast(size, dtypes.float32), cast(many, dtypes.float32)
    scale = above / below
    if align_corners:
        scale = select(below > 1, (above - 1) / math_ops.maximum(below - 1, 1), scale)
    if half_pixel_centers:
        return (outputs + 0.5) * scale - centre
    return outputs * scale
