"""Inside a real TensorFlow: any call of a patched op, asked for line by line.

    python properties_checks.py < calls       one line of JSON a call; one line {"faults": [...]} an answer

A call names a family of `FAMILIES` and what that takes: shapes, a dtype, indices, a seed.  The original op and the
patched one have to agree within rounding, both with NumPy in float64, and where the original raises, in the error.
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


def random(asked, shape, low=-1.0, high=1.0):
    """Random numbers of the dtype that was asked for."""
    draw = np.random.RandomState(asked["seed"]).uniform
    values = draw(low, high, shape)
    dtype = asked["dtype"]
    if dtype.startswith("complex"):
        values = values + 1j * draw(low, high, shape)
    return np.asarray(values).astype(tf.as_dtype(dtype).as_numpy_dtype)


def raw(module, name):
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def ids(asked, name="ids"):
    return np.array(asked[name], asked.get("kind", "int32")).reshape(asked.get(name + "_shape", [-1]))


# --- the families: (patch, call, inputs, how many numbers are added up, NumPy's answer or None) ---

def segment(asked):
    keys, product = ids(asked), asked["name"] == "segment_prod"
    data = random(asked, (keys.size,) + tuple(asked["inner"]), *((0.7, 1.2) if product else (-1, 1)))
    count = int(keys[-1]) + 1 if keys.size else 0
    return ("segment", lambda d, i: getattr(tf.math, asked["name"])(d, i), [data, keys], keys.size + 2,
            lambda d, i: _reduced(d, i, count, product))


def unsorted_segment(asked):
    keys, name, count = ids(asked), asked["name"], asked["count"]
    product = name == "unsorted_segment_prod"
    data = random(asked, keys.shape + tuple(asked["inner"]), *((0.7, 1.2) if product else (-1, 1)))

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


def scatter_nd(asked):
    shape, indices = tuple(asked["shape"]), ids(asked)
    updates = random(asked, indices.shape[:-1] + shape[indices.shape[-1]:])
    return ("scatter-nd", lambda i, u: tf.scatter_nd(i, u, np.array(shape, asked["kind"])), [indices, updates],
            updates.size + 2, lambda i, u: scattered(np.zeros(shape, u.dtype), i, u, "nd_add"))


def tensor_scatter(asked):
    shape, indices, name = tuple(asked["shape"]), ids(asked), asked["name"]
    target, updates = random(asked, shape), random(asked, indices.shape[:-1] + shape[indices.shape[-1]:])
    return ("tensor-scatter-nd", lambda t, i, u: getattr(tf, "tensor_scatter_nd_" + name)(t, i, u),
            [target, indices, updates], updates.size + 2, lambda t, i, u: scattered(t, i, u, "nd_" + name))


def into_rows(asked):
    shape, indices, name = tuple(asked["shape"]), ids(asked), asked["name"]
    updates = random(asked, () if asked["scalar"] else indices.shape + shape[1:], 0.7, 1.2)

    def call(value, indices, updates):
        variable = tf1.Variable(value, use_resource=True)
        raw("gen_resource_variable_ops", "resource_scatter_" + name)(variable.handle, indices, updates)
        return variable.read_value()
    return ("resource-scatter", call, [random(asked, shape), indices, updates], indices.size + 2,
            lambda v, i, u: scattered(v, i, u, name))


def into_tuples(asked):
    shape, indices, name = tuple(asked["shape"]), ids(asked), asked["name"]
    updates = random(asked, indices.shape[:-1] + shape[indices.shape[-1]:])

    def call(value, indices, updates):
        variable = tf1.Variable(value, use_resource=True)
        raw("gen_state_ops", "resource_scatter_nd_" + name)(variable.handle, indices, updates)
        return variable.read_value()
    return ("scatter-nd-variable", call, [random(asked, shape), indices, updates], updates.size + 2,
            lambda v, i, u: scattered(v, i, u, "nd_" + name))


def gather(asked):
    shape, indices, axis = tuple(asked["shape"]), ids(asked), asked["axis"]
    up = random(asked, shape[:axis] + indices.shape + shape[axis + 1:])

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
    return ("unsorted-segment", call, [random(asked, shape), indices, up], indices.size + 2, expected)


def bincount(asked):
    values, size = ids(asked), asked["count"]

    def expected(values, weights):
        kept = values.reshape(-1) < size
        return np.bincount(values.reshape(-1)[kept].astype(int), weights.reshape(-1)[kept], size)[:size]
    return ("bincount", lambda v, w: raw("gen_math_ops", "bincount")(v, size, w), [values, random(asked, values.shape)],
            values.size + 2, expected if values.size else None)


def crop(asked):
    batch, height, width, depth = asked["shape"]
    where, size, name = ids(asked), asked["size"], asked["name"]
    boxes = np.array(asked["boxes"], "float32").reshape(-1, 4)
    grads = random(dict(asked, dtype="float32"), [len(boxes)] + size + [depth])
    terms = grads.size * 4 + 4
    if name == "boxes":
        image = random(asked, (batch, height, width, depth))
        return ("crop-and-resize", raw("gen_image_ops", "crop_and_resize_grad_boxes"), [grads, image, boxes, where],
                terms * 10, lambda g, image, b, i: _to_boxes(g, image, boxes, where))

    def call(grads, boxes, where):
        return raw("gen_image_ops", "crop_and_resize_grad_image")(
            grads, boxes, where, asked["shape"], tf.as_dtype(asked["dtype"]), method=name)
    return ("crop-and-resize", call, [grads, boxes, where], terms,
            lambda g, b, i: _to_image(g, boxes, where, asked["shape"], name))


def _pixels(boxes, height, width, size):
    """(box, row, column of its crop, place in the image) of every pixel that lies inside the image."""
    for box, (top, left, bottom, right) in enumerate(boxes):
        for row, y in enumerate(_along(top, bottom, height, size[0])):
            for column, x in enumerate(_along(left, right, width, size[1])):
                if 0 <= y <= height - 1 and 0 <= x <= width - 1:
                    yield box, row, column, y, x


def _along(first, last, old, new):
    """Where the crop's rows lie, in float32: the last bit decides whether one is outside."""
    extent = np.float32(old - 1)
    if new == 1:
        return [np.float32(0.5) * (first + last) * extent]
    return [first * extent + np.float32(n) * ((last - first) * extent / np.float32(new - 1)) for n in range(new)]


def _to_image(grads, boxes, where, shape, name):
    out = np.zeros(shape)
    for box, row, column, y, x in _pixels(boxes, shape[1], shape[2], grads.shape[1:3]):
        image, up = out[where[box]], grads[box, row, column]
        if name == "nearest":
            image[int(np.floor(y + np.float32(0.5))), int(np.floor(x + np.float32(0.5)))] += up
            continue
        for one, y_share in ((np.floor(y), 1 - y % 1), (np.ceil(y), y % 1)):
            for two, x_share in ((np.floor(x), 1 - x % 1), (np.ceil(x), x % 1)):
                image[int(one), int(two)] += up * float(y_share) * float(x_share)
    return out


def _to_boxes(grads, images, boxes, where):
    """By the chain rule: the slope of the image at a pixel, times how far the pixel moves with each edge."""
    out, (_, height, width, _), size = np.zeros((len(boxes), 4)), images.shape, grads.shape[1:3]
    for box, row, column, y, x in _pixels(boxes, height, width, size):
        (above, below), (left, right) = [(int(np.floor(n)), int(np.ceil(n))) for n in (y, x)]
        corners, up = images[where[box]], grads[box, row, column]
        y_share, x_share = float(y % 1), float(x % 1)
        slopes = [(1 - x_share) * (corners[below, left] - corners[above, left])
                  + x_share * (corners[below, right] - corners[above, right]),
                  (1 - y_share) * (corners[above, right] - corners[above, left])
                  + y_share * (corners[below, right] - corners[below, left])]
        for axis, (slope, at, old) in enumerate(zip(slopes, (row, column), (height, width))):
            to_last = at / float(size[axis] - 1) if size[axis] > 1 else 0.5
            out[box, axis] += (slope * up).sum() * (1 - to_last) * (old - 1)
            out[box, axis + 2] += (slope * up).sum() * to_last * (old - 1)
    return out


def resize(asked):
    (batch, height, width, depth), name = asked["shape"], asked["name"]
    options = {"align_corners": asked["mode"] == "align_corners", "half_pixel_centers": asked["mode"] == "half_pixel"}
    nearest = name == "nearest"
    kind = asked["dtype"] if nearest else "float32"  # the gradients of bilinear ones are float32, whatever the image
    grads = random(dict(asked, dtype=kind), [batch] + asked["size"] + [depth])

    def call(grads):
        if nearest:
            return raw("gen_image_ops", "resize_nearest_neighbor_grad")(grads, [height, width], **options)
        image = tf.zeros(asked["shape"], asked["dtype"])
        return raw("gen_image_ops", "resize_bilinear_grad")(grads, image, **options)

    def expected(grads):
        rows, columns = [_interpolation(new, old, asked["mode"], nearest)
                         for new, old in zip(asked["size"], (height, width))]
        return np.einsum("oh,bopc,pw->bhwc", rows, grads, columns)
    return ("resize-nearest" if nearest else "resize-bilinear", call, [grads], grads.size + 4, expected)


def _interpolation(new, old, mode, nearest):
    """The matrix [new, old] of resizing; where a pixel lies is computed in float32, as the op defines it."""
    one = np.float32(1)
    scale = np.float32(old) / np.float32(new)
    if mode == "align_corners" and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    places = np.arange(new).astype("float32") * scale
    if mode == "half_pixel":
        places = (np.arange(new).astype("float32") + one / 2) * scale - (0 if nearest else one / 2)
    matrix = np.zeros((new, old))
    for row, place in enumerate(places):
        if nearest:
            place = np.floor(place + one / 2) if mode == "align_corners" else np.floor(place)
            matrix[row, min(max(int(place), 0), old - 1)] = 1
            continue
        low, share = max(int(np.floor(place)), 0), float(place - np.floor(place))
        matrix[row, min(low, old - 1)] += 1 - share
        matrix[row, min(int(np.ceil(place)), old - 1) if place > 0 else 0] += share
    return matrix


FAMILIES = dict((function.__name__, function) for function in (
    segment, unsorted_segment, scatter_nd, tensor_scatter, into_rows, into_tuples, gather, bincount, crop, resize))


def answer(asked):
    patch, call, inputs, terms, expected = FAMILIES[asked["family"]](asked)
    # bfloat16 has no NumPy type that old versions can print: its rounding is named.
    case = Case("", patch, call, inputs, terms=terms, expected=expected, eps=asked["dtype"])
    wanted = _outcome(case)  # the first call makes TensorFlow's lazy modules hold the original, to be found there
    places = _put_in(patch, (asked["family"], asked.get("name")))
    try:
        got = _outcome(case)
    finally:
        for module, name, old, _ in places:
            setattr(module, name, old)
    if isinstance(wanted, Exception):
        if type(wanted) is type(got) or _no_kernel(wanted):
            return []
        return ["the original raises %r, the patched op %r" % (wanted, got)]
    if isinstance(got, Exception):
        return ["the patched op raises %r" % got]
    return case.compare(wanted, got)


_found = {}


def _put_in(patch, kind):
    """Replace the patch's ops; where they were found is kept for later calls of this kind: looking takes long."""
    if kind not in _found:
        replaced = Replacements()
        replaced.install(PATCHES[patch])
        _found[kind] = replaced._replaced
    for module, name, _, new in _found[kind]:
        setattr(module, name, new)
    return _found[kind]


def _outcome(case):
    try:
        return case.results("eager")
    except Exception as error:
        return error


def _no_kernel(error):
    """Whether the original has none for this dtype: the patched op may have more."""
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
