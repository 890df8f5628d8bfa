"""crop_and_resize's gradients to the image and to the boxes.

To the image: every pixel of every crop contributes to at most four pixels; the contributions are summed exactly.
(TensorFlow's CPU kernel loses some of them: its threads race.) To the boxes: plain sums over each crop.
"""

from tfdeterminism.patches import chunked, exact_sum
from tfdeterminism.patches.common import (
    OpNameScope,
    cast,
    constant,
    dims,
    fill_like,
    product,
    reshape,
    select,
    tensor,
    use_original_unless,
)


def install(replacements):
    from tensorflow.python.ops import gen_image_ops, image_ops
    replacements.replace(gen_image_ops, "crop_and_resize_grad_image", _grad_image)
    replacements.replace(gen_image_ops, "crop_and_resize_grad_boxes", _grad_boxes)
    replacements.note_public_caller(getattr(gen_image_ops, "crop_and_resize", None))
    for name in ("crop_and_resize", "crop_and_resize_v1", "crop_and_resize_v2"):
        replacements.note_public_caller(getattr(image_ops, name, None))


def _grad_image(grads, boxes, box_ind, image_size, T, method="bilinear", name=None):
    from tensorflow.python.framework import dtypes, tensor_util
    from tensorflow.python.ops import array_ops
    with OpNameScope(name, "CropAndResizeGradImage") as scope:
        kind, method = dtypes.as_dtype(T), _text(method)
        grads, boxes = tensor(grads, dtypes.float32), tensor(boxes, dtypes.float32)
        box_ind, image_size = tensor(box_ind, dtypes.int32), tensor(image_size, dtypes.int32)
        use_original_unless(kind in (dtypes.float16, dtypes.float32, dtypes.float64))
        use_original_unless(method in ("bilinear", "nearest"))
        _require_crops(grads, boxes, box_ind)
        use_original_unless(image_size.shape.is_compatible_with([4]))
        static_size = constant(image_size)
        batch, height, width, _ = [image_size[i] if static_size is None else int(static_size[i]) for i in range(4)]
        crops = _Crops(boxes, box_ind, dims(grads)[1:3], batch, height, width)
        # Summed in the type of the result if that is the wider one, else in the gradients' own float32.
        grads = cast(grads, kind) if kind == dtypes.float64 else grads
        points = reshape(grads, [product(dims(grads)[:3]), dims(grads)[3]])
        if method == "nearest":
            addends = exact_sum.Addends.from_rows(points, crops.closest())
        else:
            addends = exact_sum.Addends.weighted(points, crops.shares())
        result = cast(array_ops.reshape(exact_sum.sum_by_key(addends, crops.pixels), image_size), kind)
        result.set_shape(tensor_util.constant_value_as_shape(image_size))
        return scope.named(result)


def _grad_boxes(grads, image, boxes, box_ind, method="bilinear", name=None):
    from tensorflow.python.framework import dtypes
    with OpNameScope(name, "CropAndResizeGradBoxes") as scope:
        grads, image = tensor(grads, dtypes.float32), tensor(image)
        boxes, box_ind = tensor(boxes, dtypes.float32), tensor(box_ind, dtypes.int32)
        use_original_unless(_text(method) == "bilinear" and image.shape.ndims == 4)
        _require_crops(grads, boxes, box_ind)
        result = _gradients_to_boxes(grads, image, boxes, box_ind)
        result.set_shape([boxes.shape.as_list()[0], 4])
        return scope.named(result)


def _gradients_to_boxes(grads, image, boxes, box_ind):
    """Return the gradients to the boxes [boxes, 4], some boxes at a time."""
    from tensorflow.python.framework import dtypes, tensor_shape
    from tensorflow.python.ops import array_ops
    pixels = cast(reshape(image, [product(dims(image)[:3]), dims(image)[3]]), dtypes.float32)

    def add_boxes(edges_so_far, *chunk):
        chunk_grads, chunk_boxes, chunk_indices = [chunked.chunk_of(value)(*chunk) for value in (grads, boxes, box_ind)]
        crops = _Crops(chunk_boxes, chunk_indices, dims(grads)[1:3], *dims(image)[:3])
        edges = _edges(chunk_grads, pixels, crops)
        return [edges if edges_so_far is None else array_ops.concat(edges_so_far + [edges], 0)]
    box_count, size = dims(grads)[0], product(dims(grads)[1:])
    return chunked.map_chunks(box_count, size, add_boxes, lambda: [array_ops.zeros([0, 4])],
                       shapes=[tensor_shape.TensorShape([None, 4])])[0]


def _edges(grads, pixels, crops):
    """Return the gradients [boxes, 4] to each box's y1, x1, y2, x2."""
    from tensorflow.python.ops import array_ops, math_ops
    (above_left, above_right), (below_left, below_right) = [
        [array_ops.gather(pixels, crops.inside(y, x)) for x in (crops.x.low, crops.x.high)]
        for y in (crops.y.low, crops.y.high)]
    x_share = array_ops.expand_dims(crops.x.across(1), 3)
    y_share = array_ops.expand_dims(crops.y.across(2), 3)
    slope_y = (1 - x_share) * (below_left - above_left) + x_share * (below_right - above_right)
    slope_x = (1 - y_share) * (above_right - above_left) + y_share * (below_right - below_left)
    valid = array_ops.reshape(crops.valid, [-1])
    along_y, along_x = [_masked(valid, math_ops.reduce_sum(slope * grads, 3)) for slope in (slope_y, slope_x)]
    (crop_height, crop_width), (_, height, width) = dims(grads)[1:3], crops.size
    parts = [_edge_shares(along_y, 1, crop_height, height), _edge_shares(along_x, 2, crop_width, width)]
    edges = [math_ops.reduce_sum(parts[axis][end], [1, 2]) for end in (0, 1) for axis in (0, 1)]
    return array_ops.concat([array_ops.expand_dims(edge, 1) for edge in edges], 1)


def _masked(valid, values):
    from tensorflow.python.ops import array_ops
    flat = array_ops.reshape(values, [-1])
    return array_ops.reshape(select(valid, flat, array_ops.zeros_like(flat)), array_ops.shape(values))


def _edge_shares(slopes, axis, crop, size):
    """Return the parts of the slopes [boxes, CH, CW] that belong to a box's first and last edge along an axis."""
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, math_ops
    extent = cast(size, dtypes.float32) - 1
    steps = cast(crop, dtypes.float32) - 1
    position = cast(math_ops.range(crop), dtypes.float32) * (extent / math_ops.maximum(steps, 1))
    offset = array_ops.reshape(position, [1, -1, 1] if axis == 1 else [1, 1, -1])
    # A crop of one row or column is in the middle of the box: half for either edge.
    offset = offset + (0.5 * extent) * cast(math_ops.equal(steps, 0), dtypes.float32)
    return slopes * (extent - offset), slopes * offset


class _Axis(object):
    """The positions of the crops' rows (or columns) in the image; all attributes are [boxes, crop size]."""

    def __init__(self, first, last, crop, size):
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, math_ops
        extent = cast(size, dtypes.float32) - 1
        steps = cast(crop, dtypes.float32) - 1
        first, last = array_ops.expand_dims(first, 1), array_ops.expand_dims(last, 1)
        scale = (last - first) * extent / math_ops.maximum(steps, 1)
        middle = 0.5 * (first + last) * extent
        spread = first * extent + array_ops.expand_dims(cast(math_ops.range(crop), dtypes.float32), 0) * scale
        has_one_row = array_ops.zeros_like(spread) + steps < 0.5
        position = select(has_one_row, array_ops.zeros_like(spread) + middle, spread)
        self.valid = math_ops.logical_and(position >= 0, position <= extent)
        self.position = select(self.valid, position, array_ops.zeros_like(position))
        self.low = cast(math_ops.floor(self.position), dtypes.int64)
        self.high = cast(math_ops.ceil(self.position), dtypes.int64)
        self.closest = cast(math_ops.floor(self.position + 0.5), dtypes.int64)
        self.share = self.position - math_ops.floor(self.position)

    def across(self, axis):
        """Return the weight of the upper neighbor, as [boxes, 1, crop] or [boxes, crop, 1]."""
        from tensorflow.python.ops import array_ops
        return array_ops.expand_dims(self.share, axis)


class _Crops(object):
    """The crops' pixels in the flattened images [batch * height * width]."""

    def __init__(self, boxes, box_ind, crop, batch, height, width):
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, math_ops
        self.y = _Axis(boxes[:, 0], boxes[:, 2], crop[0], height)
        self.x = _Axis(boxes[:, 1], boxes[:, 3], crop[1], width)
        self._height, self._width = cast(height, dtypes.int64), cast(width, dtypes.int64)
        # pixels: the number of pixels of all images, which is out of range as the number of a pixel.
        self.size, self.pixels = [batch, height, width], cast(product([batch, height, width]), dtypes.int64)
        self._image = array_ops.reshape(cast(_check_box_indices(box_ind, batch), dtypes.int64), [-1, 1, 1])
        self._image_exists = math_ops.logical_and(self._image >= 0, self._image < cast(batch, dtypes.int64))
        self.valid = math_ops.logical_and(
            array_ops.expand_dims(self.y.valid, 2), array_ops.expand_dims(self.x.valid, 1))

    def inside(self, y, x):
        """Return the pixel numbers [boxes, CH, CW] of rows y and columns x; out of range without such an image."""
        from tensorflow.python.ops import array_ops, math_ops
        pixel = (self._image * self._height + array_ops.expand_dims(y, 2)) * self._width + array_ops.expand_dims(x, 1)
        image_exists = math_ops.logical_and(self._image_exists, math_ops.equal(pixel, pixel))  # in the shape of pixel
        return select(image_exists, pixel, fill_like(self.pixels, pixel))

    def closest(self):
        """Return the number of the pixel closest to each pixel of a crop: int64 vector."""
        return self._counted(self.y.closest, self.x.closest)

    def shares(self):
        """Return [(pixel numbers, weights [N, 1])] of the four pixels around each pixel of a crop."""
        from tensorflow.python.ops import array_ops
        y, x = self.y.across(2), self.x.across(1)
        return [(self._counted(rows, columns), array_ops.reshape(y_share * x_share, [-1, 1]))
                for rows, y_share in ((self.y.low, 1 - y), (self.y.high, y))
                for columns, x_share in ((self.x.low, 1 - x), (self.x.high, x))]

    def _counted(self, y, x):
        """Return the same as inside, but -1 for pixels that contribute nothing, such as extrapolated ones."""
        from tensorflow.python.ops import array_ops, math_ops
        pixel = self.inside(y, x)
        counted = math_ops.logical_and(self.valid, pixel < self.pixels)
        return array_ops.reshape(select(counted, pixel, array_ops.zeros_like(pixel) - 1), [-1])


def _check_box_indices(box_ind, batch):
    """Return box_ind; an image that does not exist raises OutOfRangeError on a CPU, as crop_and_resize does.

    A black pixel is cropped from each image; adding it keeps optimizers from dropping the check.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_image_ops
    images, boxes = array_ops.zeros([batch, 1, 1, 1]), array_ops.zeros([array_ops.size(box_ind), 4])
    black = gen_image_ops.crop_and_resize(images, boxes, box_ind, [1, 1])
    return box_ind + cast(array_ops.reshape(black, [-1]), dtypes.int32)


def _require_crops(grads, boxes, box_ind):
    use_original_unless(grads.shape.ndims == 4 and boxes.shape.is_compatible_with([None, 4]) and boxes.shape.ndims == 2)
    use_original_unless(box_ind.shape.ndims == 1 and boxes.shape[:1].is_compatible_with(box_ind.shape))
    use_original_unless(grads.shape[:1].is_compatible_with(box_ind.shape))


def _text(value):
    return value.decode() if isinstance(value, bytes) else value
