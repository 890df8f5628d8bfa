"""Inside a real TensorFlow: any call of a replaced op, asked for line by line.

    python properties_checks.py < calls       one line of JSON a call; one line {"faults": [...]} an answer

A call names a family of `FAMILIES` and what that takes: shapes, a dtype, indices, a seed.  The original op and the
patched one have to agree within rounding, both with NumPy in float64, and where the original raises, in the error.
The function of a family returns (patch key, call, inputs, how many numbers a result sums at most, expected results).
"""

import json
import sys
import traceback
import warnings

import math_checks
import numpy as np
import tensorflow as tf
from cases_scatters_checks import scattered
from math_checks import PATCHES, Case, Replacements

tf1 = math_checks.tf1


def random(request, shape, low=-1.0, high=1.0):
    """Return random numbers of the requested dtype."""
    draw = np.random.RandomState(request["seed"]).uniform
    values = draw(low, high, shape)
    dtype = request["dtype"]
    if dtype.startswith("complex"):
        values = values + 1j * draw(low, high, shape)
    return np.asarray(values).astype(tf.as_dtype(dtype).as_numpy_dtype)


def raw(module, name):
    """Return a function of a module of tensorflow.python.ops."""
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def ids(request, name="ids"):
    """Return the indices of the call, in its shape and dtype."""
    return np.array(request[name], request.get("kind", "int32")).reshape(request.get(name + "_shape", [-1]))


# --- the families: (patch, call, inputs, how many numbers are added up, NumPy's answer or None) ---

def segment(request):
    keys, product = ids(request), request["name"] == "segment_prod"
    data = random(request, (keys.size,) + tuple(request["inner"]), *((0.7, 1.2) if product else (-1, 1)))
    count = int(keys[-1]) + 1 if keys.size else 0
    return ("segment", lambda d, i: getattr(tf.math, request["name"])(d, i), [data, keys], keys.size + 2,
            lambda d, i: _reduced(d, i, count, product))


def unsorted_segment(request):
    keys, name, count = ids(request), request["name"], request["count"]
    product = name == "unsorted_segment_prod"
    data = random(request, keys.shape + tuple(request["inner"]), *((0.7, 1.2) if product else (-1, 1)))

    def expected(d, i):
        sums = _reduced(d, i, count, product)
        number = np.maximum(_reduced(np.ones_like(d), i, count, False), 1)
        return sums / {"mean": number, "sqrt_n": np.sqrt(number)}.get(name.replace("unsorted_segment_", ""), 1)
    return ("unsorted-segment", lambda d, i: getattr(tf.math, name)(d, i, count), [data, keys], keys.size + 2, expected)


def _reduced(data, keys, count, product):
    out = (np.ones if product else np.zeros)((count,) + data.shape[keys.ndim:], data.dtype)
    for key, row in zip(keys.reshape(-1).astype(int), data.reshape((keys.size,) + data.shape[keys.ndim:])):
        if key >= 0:
            out[key] = out[key] * row if product else out[key] + row
    return out


def scatter_nd(request):
    shape, indices = tuple(request["shape"]), ids(request)
    updates = random(request, indices.shape[:-1] + shape[indices.shape[-1]:])
    return ("scatter-nd", lambda i, u: tf.scatter_nd(i, u, np.array(shape, request["kind"])), [indices, updates],
            updates.size + 2, lambda i, u: scattered(np.zeros(shape, u.dtype), i, u, "nd_add"))


def tensor_scatter(request):
    shape, indices, name = tuple(request["shape"]), ids(request), request["name"]
    target, updates = random(request, shape), random(request, indices.shape[:-1] + shape[indices.shape[-1]:])
    return ("tensor-scatter-nd", lambda t, i, u: getattr(tf, "tensor_scatter_nd_" + name)(t, i, u),
            [target, indices, updates], updates.size + 2, lambda t, i, u: scattered(t, i, u, "nd_" + name))


def into_rows(request):
    shape, indices, name = tuple(request["shape"]), ids(request), request["name"]
    updates = random(request, () if request["scalar"] else indices.shape + shape[1:], 0.7, 1.2)

    def call(value, indices, updates):
        variable = tf1.Variable(value, use_resource=True)
        raw("gen_resource_variable_ops", "resource_scatter_" + name)(variable.handle, indices, updates)
        return variable.read_value()
    return ("resource-scatter", call, [random(request, shape), indices, updates], indices.size + 2,
            lambda v, i, u: scattered(v, i, u, name))


def into_tuples(request):
    shape, indices, name = tuple(request["shape"]), ids(request), request["name"]
    updates = random(request, indices.shape[:-1] + shape[indices.shape[-1]:])

    def call(value, indices, updates):
        variable = tf1.Variable(value, use_resource=True)
        raw("gen_state_ops", "resource_scatter_nd_" + name)(variable.handle, indices, updates)
        return variable.read_value()
    return ("scatter-nd-variable", call, [random(request, shape), indices, updates], updates.size + 2,
            lambda v, i, u: scattered(v, i, u, "nd_" + name))


def gather(request):
    shape, indices, axis = tuple(request["shape"]), ids(request), request["axis"]
    up = random(request, shape[:axis] + indices.shape + shape[axis + 1:])

    def call(params, indices, up):
        with tf.GradientTape() as tape:
            tape.watch(params)
            result = tf.gather(params, indices, axis=axis)
        return tf.convert_to_tensor(tape.gradient(result, params, output_gradients=up))

    def expected(params, indices, up):
        out = np.zeros_like(params)
        first = up.reshape(shape[:axis] + (indices.size,) + shape[axis + 1:])
        np.add.at(np.moveaxis(out, axis, 0), indices.reshape(-1).astype(int), np.moveaxis(first, axis, 0))
        return out
    return ("unsorted-segment", call, [random(request, shape), indices, up], indices.size + 2, expected)


def bincount(request):
    values, size = ids(request), request["count"]

    def expected(values, weights):
        counted = values.reshape(-1) < size
        return np.bincount(values.reshape(-1)[counted].astype(int), weights.reshape(-1)[counted], size)[:size]
    return ("bincount", lambda v, w: raw("gen_math_ops", "bincount")(v, size, w),
            [values, random(request, values.shape)], values.size + 2, expected if values.size else None)


def crop(request):
    batch, height, width, depth = request["shape"]
    box_indices, size, name = ids(request), request["size"], request["name"]
    boxes = np.array(request["boxes"], "float32").reshape(-1, 4)
    grads = random(dict(request, dtype="float32"), [len(boxes)] + size + [depth])
    terms = grads.size * 4 + 4
    if name == "boxes":
        image = random(request, (batch, height, width, depth))
        return ("crop-and-resize", raw("gen_image_ops", "crop_and_resize_grad_boxes"),
                [grads, image, boxes, box_indices], terms * 10,
                lambda g, image, b, i: _to_boxes(g, image, boxes, box_indices))

    def call(grads, boxes, owners):
        return raw("gen_image_ops", "crop_and_resize_grad_image")(
            grads, boxes, owners, request["shape"], tf.as_dtype(request["dtype"]), method=name)
    return ("crop-and-resize", call, [grads, boxes, box_indices], terms,
            lambda g, b, i: _to_image(g, boxes, box_indices, request["shape"], name))


def _pixels(boxes, height, width, size, along):
    """Yield (box, row, column of its crop, position in the image) of every pixel inside the image.

    along: the function that gives the positions of a crop's rows.
    """
    for box, (top, left, bottom, right) in enumerate(boxes):
        for row, y in enumerate(along(top, bottom, height, size[0])):
            for column, x in enumerate(along(left, right, width, size[1])):
                if 0 <= y <= height - 1 and 0 <= x <= width - 1:
                    yield box, row, column, y, x


def _along(first, last, old, new):
    """Return the positions of a crop's rows in float32, whose last bit decides whether one is outside."""
    extent = np.float32(old - 1)
    if new == 1:
        return [np.float32(0.5) * (first + last) * extent]
    return [first * extent + np.float32(n) * ((last - first) * extent / np.float32(new - 1)) for n in range(new)]


def _along_boxes(first, last, old, new):
    """Return the positions as the gradient of the boxes has them: it divides the extents first."""
    if new == 1:
        return _along(first, last, old, new)
    extent = np.float32(old - 1)
    return [first * extent + np.float32(n) * ((last - first) * (extent / np.float32(new - 1))) for n in range(new)]


def _to_image(grads, boxes, box_indices, shape, name):
    out = np.zeros(shape)
    for box, row, column, y, x in _pixels(boxes, shape[1], shape[2], grads.shape[1:3], _along):
        image, up = out[box_indices[box]], grads[box, row, column]
        if name == "nearest":
            image[int(np.floor(y + np.float32(0.5))), int(np.floor(x + np.float32(0.5)))] += up
            continue
        for pixel_row, y_share in ((np.floor(y), 1 - y % 1), (np.ceil(y), y % 1)):
            for two, x_share in ((np.floor(x), 1 - x % 1), (np.ceil(x), x % 1)):
                image[int(pixel_row), int(two)] += up * float(y_share) * float(x_share)
    return out


def _to_boxes(grads, images, boxes, box_indices):
    """Return the gradient to the boxes: the image's slope at a pixel times how far each edge moves the pixel."""
    out, (_, height, width, _), size = np.zeros((len(boxes), 4)), images.shape, grads.shape[1:3]
    for box, row, column, y, x in _pixels(boxes, height, width, size, _along_boxes):
        (above, below), (left, right) = [(int(np.floor(n)), int(np.ceil(n))) for n in (y, x)]
        corners, up = images[box_indices[box]], grads[box, row, column]
        y_share, x_share = float(y % 1), float(x % 1)
        slopes = [(1 - x_share) * (corners[below, left] - corners[above, left])
                  + x_share * (corners[below, right] - corners[above, right]),
                  (1 - y_share) * (corners[above, right] - corners[above, left])
                  + y_share * (corners[below, right] - corners[below, left])]
        for axis, (slope, coordinate, old) in enumerate(zip(slopes, (row, column), (height, width))):
            to_last = coordinate / float(size[axis] - 1) if size[axis] > 1 else 0.5
            out[box, axis] += (slope * up).sum() * (1 - to_last) * (old - 1)
            out[box, axis + 2] += (slope * up).sum() * to_last * (old - 1)
    return out


def resize(request):
    (batch, height, width, depth), name = request["shape"], request["name"]
    options = {"align_corners": request["mode"] == "align_corners",
               "half_pixel_centers": request["mode"] == "half_pixel"}
    nearest = name == "nearest"
    kind = request["dtype"] if nearest else "float32"  # the gradients of bilinear ones are float32, whatever the image
    grads = random(dict(request, dtype=kind), [batch] + request["size"] + [depth])

    def call(grads):
        if nearest:
            return raw("gen_image_ops", "resize_nearest_neighbor_grad")(grads, [height, width], **options)
        image = tf.zeros(request["shape"], request["dtype"])
        return raw("gen_image_ops", "resize_bilinear_grad")(grads, image, **options)

    def expected(grads):
        rows, columns = [_interpolation(new, old, request["mode"], nearest)
                         for new, old in zip(request["size"], (height, width))]
        return np.einsum("oh,bopc,pw->bhwc", rows, grads, columns)
    return ("resize-nearest" if nearest else "resize-bilinear", call, [grads], grads.size + 4, expected)


def _interpolation(new, old, mode, nearest):
    """Return the [new, old] matrix of a resize; positions are computed in float32, as the op does."""
    unit = np.float32(1)
    scale = np.float32(old) / np.float32(new)
    if mode == "align_corners" and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    positions = np.arange(new).astype("float32") * scale
    if mode == "half_pixel":
        positions = (np.arange(new).astype("float32") + unit / 2) * scale - (0 if nearest else unit / 2)
    matrix = np.zeros((new, old))
    for row, position in enumerate(positions):
        if nearest:
            position = np.floor(position + unit / 2) if mode == "align_corners" else np.floor(position)
            matrix[row, min(max(int(position), 0), old - 1)] = 1
            continue
        low, share = max(int(np.floor(position)), 0), float(position - np.floor(position))
        matrix[row, min(low, old - 1)] += 1 - share
        matrix[row, min(int(np.ceil(position)), old - 1) if position > 0 else 0] += share
    return matrix


FAMILIES = dict((function.__name__, function) for function in (
    segment, unsorted_segment, scatter_nd, tensor_scatter, into_rows, into_tuples, gather, bincount, crop, resize))


def answer(request):
    """Return how the replaced op differs from the original and from NumPy in this call, as text."""
    patch, call, inputs, terms, expected = FAMILIES[request["family"]](request)
    # bfloat16 has no NumPy type that old versions can print: its rounding is named.
    case = Case("", patch, call, inputs, terms=terms, expected=expected, eps=request["dtype"])
    original = _outcome(case)  # the first call makes TensorFlow's lazy modules hold the original, to be found there
    replaced_names = _put_in(patch, (request["family"], request.get("name")))
    try:
        actual = _outcome(case)
    finally:
        for module, name, old, _ in replaced_names:
            setattr(module, name, old)
    if isinstance(original, Exception):
        if type(original) is type(actual) or _no_kernel(original):
            return []
        return ["the original raises %r, the replaced op %r" % (original, actual)]
    if isinstance(actual, Exception):
        return ["the replaced op raises %r" % actual]
    return case.compare(original, actual)


_cache = {}


def _put_in(patch, kind):
    """Replace the patch's ops, and cache where they were found, because the search is slow."""
    if kind not in _cache:
        replaced = Replacements()
        replaced.install(PATCHES[patch])
        _cache[kind] = replaced._replaced
    for module, name, _, new in _cache[kind]:
        setattr(module, name, new)
    return _cache[kind]


def _outcome(case):
    """Return the results of the case, or the error that it raises."""
    try:
        return case.results("eager")
    except Exception as error:
        return error


def _no_kernel(error):
    """Whether the original op has no kernel for this dtype; the replaced op may have one."""
    return isinstance(error, (tf.errors.NotFoundError, tf.errors.UnimplementedError))


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            faults = answer(json.loads(line))
        except Exception:
            faults = [traceback.format_exc()[-2000:]]
        print(json.dumps({"faults": faults}))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
