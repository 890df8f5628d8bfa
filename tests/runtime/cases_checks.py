"""The calls that math_checks.py compares: every patched op in its dtypes, layouts, shapes and odd inputs."""

import numpy as np

FLOATS = ("float16", "float32", "float64")
# Graphs of known shapes, of known ranks only, of nothing known: sessions cost time, so each op has a few such cases.
EAGER = ("eager",)
STATIC = ("eager", "static")
DIMS = ("eager", "static", "dims")
ALL = ("eager", "static", "dims", "rank")


def cases(tf, tf1, case, version):
    groups = (bias, segments, unsorted_segments, gathers, resizes, crops, losses, norms, scatters, variables,
              histograms, products, depthwise, contrasts)
    for group in groups:
        for made in group(tf, tf1, _Maker(case), version):
            yield made


class _Maker:
    """Random arrays, the same in every run, and cases made of them."""

    def __init__(self, case):
        self.case = case
        self._random = np.random.RandomState(11)

    def real(self, shape, dtype="float32", low=-1.0, high=1.0):
        values = self._random.uniform(low, high, shape)
        if dtype.startswith("complex"):
            values = values + 1j * self._random.uniform(low, high, shape)
        return np.asarray(values).astype(dtype)

    def ints(self, low, high, shape, dtype="int32"):
        if low == high:
            return np.zeros(shape, dtype)
        return self._random.randint(low, high, shape).astype(dtype)


def bias(tf, tf1, m, version):
    for dtype in FLOATS + ("complex64", "complex128"):
        for shape in ((2, 3), (4, 1), (0, 3), (2, 3, 4), (2, 3, 4, 5), (2, 1, 3, 4, 5)):
            x, b = m.real(shape, dtype), m.real(shape[-1:], dtype)
            yield m.case("bias_add %s %s" % (dtype, shape), "bias-add", lambda x, b: tf.nn.bias_add(x, b),
                         [x, b], wrt=[0, 1], second=True, terms=120, expected=lambda x, b: x + b,
                         modes=ALL if shape == (2, 3, 4) and dtype == "float32" else EAGER)
    for shape in ((2, 3, 4), (2, 3, 4, 5), (2, 3, 1, 4, 5)):
        x, b = m.real(shape), m.real(shape[1:2])
        yield m.case("bias_add NCHW %s" % (shape,), "bias-add",
                     lambda x, b: tf.nn.bias_add(x * x, b, data_format="NC" + "DHW"[-max(1, x.shape.ndims - 2):]
                                                 if version >= (1, 15) else "NCHW"),
                     [x, b], wrt=[0, 1], second=True, terms=120)
    x, b = m.ints(-9, 9, (3, 4)), m.ints(-9, 9, (4,))
    yield m.case("bias_add int32", "bias-add", lambda x, b: tf.nn.bias_add(x, b), [x, b])


def _segment_sum(data, ids, count, start=0.0, combine=np.add):
    out = np.full((count,) + data.shape[ids.ndim:], start, dtype=data.dtype)
    rows = data.reshape((ids.size,) + data.shape[ids.ndim:])
    for row, key in zip(rows, ids.reshape(-1).astype(int)):
        if 0 <= key < count:
            out[key] = combine(out[key], row)
    return out


def segments(tf, tf1, m, version):
    dtypes = FLOATS + ("complex64", "complex128")
    for name, patch, low, high in (("segment_sum", "segment", -1, 1), ("segment_prod", "segment", 0.7, 1.2)):
        combine, start = (np.add, 0.0) if name == "segment_sum" else (np.multiply, 1.0)
        differentiable = name == "segment_sum"  # segment_prod has no gradient in TensorFlow
        for dtype in dtypes:
            for rows, inner, count in ((0, (3,), 4), (1, (), 1), (9, (2, 3), 5), (40, (0,), 3), (37, (2,), 30)):
                data, ids = m.real((rows,) + inner, dtype, low, high), np.sort(m.ints(0, count, (rows,)))
                yield m.case("%s %s %d rows of %s" % (name, dtype, rows, inner), patch, _named(tf.math, name),
                             [data, ids], wrt=[0] if differentiable else [], second=differentiable, terms=rows + 2,
                             expected=lambda d, i, c=combine, s=start: _segment_sum(
                                 d, i, int(i[-1]) + 1 if i.size else 0, s, c),
                             modes=ALL if dtype == "float32" and rows in (0, 37) else EAGER)
        ids = np.sort(m.ints(0, 40, (700,), "int64"))
        yield m.case("%s long, int64 ids" % name, patch, _named(tf.math, name),
                     [m.real((700, 2), "float32", low, high), ids], wrt=[0] if differentiable else [], terms=700,
                     modes=DIMS)
    for dtype in ("int32", "int64"):
        yield m.case("segment_sum " + dtype, "segment", lambda d, i: tf.math.segment_sum(d, i),
                     [m.ints(-9, 9, (6, 2), dtype), np.array([0, 0, 1, 3, 3, 3], "int32")])


def _named(module, name):
    return lambda *args: getattr(module, name)(*args)


def unsorted_segments(tf, tf1, m, version):
    def call(name):
        return lambda d, i, n: getattr(tf.math, "unsorted_segment_" + name)(d, i, n)
    patch = "unsorted-segment"
    for dtype in FLOATS + ("complex64", "complex128"):
        for shape, inner, count in (((0,), (3,), 4), ((1,), (), 1), ((9,), (2, 3), 5), ((40,), (0,), 3),
                                    ((4, 5), (2,), 6), ((), (3,), 2), ((50,), (1,), 90)):
            ids = m.ints(-1, count, shape)
            for name, low, high in (("sum", -1, 1), ("prod", 0.7, 1.2)):
                combine, start = (np.add, 0.0) if name == "sum" else (np.multiply, 1.0)
                yield m.case("unsorted_segment_%s %s ids %s, rows %s, %d" % (name, dtype, shape, inner, count), patch,
                             call(name), [m.real(shape + inner, dtype, low, high), ids, np.int32(count)],
                             wrt=[0] if name == "sum" or not dtype.startswith("complex") else [],
                             second=name == "sum", terms=60,
                             expected=lambda d, i, n, c=combine, s=start: _segment_sum(d, i, int(n), s, c),
                             modes=ALL if dtype == "float32" and shape in ((0,), (4, 5)) else EAGER)
    for name in ("mean", "sqrt_n"):
        for dtype in FLOATS:
            data, ids = m.real((40, 3), dtype), m.ints(-1, 7, (40,), "int64")
            yield m.case("unsorted_segment_%s %s" % (name, dtype), patch, call(name), [data, ids, np.int64(7)],
                         wrt=[0], second=True, terms=40)
    data, ids = m.real((900, 2)), m.ints(-3, 5, (900,))
    yield m.case("unsorted_segment_sum long runs", patch, call("sum"), [data, ids, np.int32(5)], wrt=[0], terms=900,
                 modes=ALL, expected=lambda d, i, n: _segment_sum(d, i, int(n)))
    data = m.real((6, 2))
    data[2:4] = [[np.inf, np.nan], [-np.inf, 1]]
    yield m.case("unsorted_segment_sum of infinities", patch, call("sum"),
                 [data, np.array([0, 0, 1, 2, 2, 0], "int32"), np.int32(3)])
    zeros = m.real((8, 2), low=0.5)
    zeros[[1, 4, 5]] = 0
    yield m.case("unsorted_segment_prod of zeros", patch, call("prod"),
                 [zeros, np.array([0, 0, 1, 2, 2, 0, 1, 3], "int32"), np.int32(4)], wrt=[0])
    for dtype in ("int32", "int64", "uint8"):
        yield m.case("unsorted_segment_sum " + dtype, patch, call("sum"),
                     [m.ints(0, 9, (6, 2), dtype), np.array([0, 2, 1, -1, 2, 2], "int32"), np.int32(3)])


def gathers(tf, tf1, m, version):
    for dtype in FLOATS + ("complex64",):
        params, indices = m.real((7, 3), dtype), m.ints(0, 7, (4, 5))
        yield m.case("gather " + dtype, "unsorted-segment", lambda p, i: tf.gather(p, i), [params, indices],
                     wrt=[0], terms=20, modes=DIMS if dtype == "float32" else EAGER)
    yield m.case("gather axis 1", "unsorted-segment", lambda p, i: tf.gather(p, i, axis=1),
                 [m.real((3, 7, 2)), m.ints(0, 7, (9,))], wrt=[0], terms=20, modes=DIMS)
    yield m.case("gather of nothing", "unsorted-segment", lambda p, i: tf.gather(p, i),
                 [m.real((3, 2)), np.zeros((0,), "int32")], wrt=[0])
    yield m.case("embedding_lookup", "unsorted-segment", lambda p, i: tf.nn.embedding_lookup(p, i),
                 [m.real((9, 4)), m.ints(0, 9, (64,))], wrt=[0], terms=64, modes=DIMS)
    yield m.case("IndexedSlices to tensor", "unsorted-segment",
                 lambda v, i: tf.convert_to_tensor(tf.IndexedSlices(v, i, tf.constant([6, 3]))),
                 [m.real((50, 3)), m.ints(0, 6, (50,))], terms=50, modes=STATIC,
                 expected=lambda v, i: _segment_sum(v, i, 6))


_SIZES = (((5, 3), (40, 31)), ((9, 9), (4, 3)), ((1, 1), (7, 5)), ((4, 4), (1, 1)), ((6, 5), (6, 5)), ((3, 8), (13, 4)),
          ((2, 300), (3, 700)))


def resizes(tf, tf1, m, version):
    image_ops = tf1.image
    for function, patch in (("resize_bilinear", "resize-bilinear"), ("resize_nearest_neighbor", "resize-nearest")):
        for align, half in ((False, False), (True, False), (False, True)):
            if half and version < (1, 14):
                continue
            options = {"align_corners": align}
            if half:
                options["half_pixel_centers"] = True
            for dtype in FLOATS:
                for old, new in _SIZES if dtype == "float32" else _SIZES[:3]:
                    terms = 4 * (new[0] // old[0] + 2) * (new[1] // old[1] + 2)
                    yield m.case("%s %s %s to %s %s" % (function, dtype, old, new, sorted(options)), patch,
                                 lambda x, s, f=function, o=options: getattr(image_ops, f)(x, s, **o),
                                 [m.real((2,) + old + (3,), dtype), np.array(new, "int32")], wrt=[0],
                                 terms=terms, eps="float32",
                                 modes=DIMS if old == (3, 8) and dtype == "float32" else EAGER)
        yield m.case(function + " of no images", patch, lambda x, s, f=function: getattr(image_ops, f)(x, s),
                     [m.real((0, 3, 4, 2)), np.array([6, 7], "int32")], wrt=[0])
    if version >= (2, 0):
        for method in ("bilinear", "nearest"):
            yield m.case("tf.image.resize " + method, "resize-" + method,
                         lambda x, method=method: tf.image.resize(x, [11, 9], method=method), [m.real((2, 4, 5, 3))],
                         wrt=[0], terms=30, modes=STATIC)


def crops(tf, tf1, m, version):
    def call(method, size, extrapolation=0.0):
        return lambda image, boxes, box: tf1.image.crop_and_resize(
            image, boxes, box, size, method=method, extrapolation_value=extrapolation)
    for method in ("bilinear", "nearest"):
        for dtype in ("float32", "float64"):  # float16 makes TensorFlow 2.0 abort
            for size in ((4, 3), (1, 1), (7, 1), (1, 5)):
                boxes = m.real((12, 4), low=-0.2, high=1.2)
                yield m.case("crop_and_resize %s %s %s" % (method, dtype, size), "crop-and-resize",
                             call(method, list(size), 0.5),
                             [m.real((2, 6, 5, 3), dtype), boxes, m.ints(0, 2, (12,))], wrt=[0, 1], terms=300,
                             eps="float32",
                             modes=DIMS if size == (4, 3) and dtype == "float32" else EAGER)
        boxes = np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0.5, 0.5, 0.5, 0.5], [0, 0, 0.4, 0.4]], "float32")
        yield m.case("crop_and_resize %s on the grid, flipped, a point" % method, "crop-and-resize",
                     call(method, [6, 5]), [m.real((1, 6, 5, 2)), boxes, np.zeros(4, "int32")], wrt=[0, 1], terms=60)
        yield m.case("crop_and_resize %s of no boxes" % method, "crop-and-resize", call(method, [2, 2]),
                     [m.real((1, 6, 5, 2)), np.zeros((0, 4), "float32"), np.zeros((0,), "int32")], wrt=[0, 1])
        yield m.case("crop_and_resize %s of one pixel" % method, "crop-and-resize", call(method, [3, 3]),
                     [m.real((1, 1, 1, 2)), m.real((3, 4), low=0, high=1), np.zeros((3,), "int32")], wrt=[0, 1])


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def losses(tf, tf1, m, version):
    from tensorflow.python.ops import gen_nn_ops
    for dtype in FLOATS:
        logits, labels = m.real((6, 9), dtype, -4, 4), m.real((6, 9), dtype, 0, 1)
        yield m.case("softmax_cross_entropy %s, labels that are no distribution" % dtype, "softmax-xent",
                     lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
                     [logits, labels], wrt=[0, 1], second=True, terms=40,
                     expected=lambda x, y: -(y * _log_softmax(x)).sum(-1), modes=ALL if dtype == "float32" else EAGER)
        yield m.case("the fused op's two outputs, %s" % dtype, "softmax-xent",
                     lambda x, y: gen_nn_ops.softmax_cross_entropy_with_logits(x, y), [logits, labels], wrt=[0, 1],
                     terms=40)
        hot = np.eye(9, dtype=dtype)[m.ints(0, 9, (6,))]
        yield m.case("softmax_cross_entropy %s of large logits" % dtype, "softmax-xent",
                     lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
                     [logits * 50, hot], wrt=[0], terms=400)
        for kind in ("int32", "int64"):
            yield m.case("sparse_softmax_cross_entropy %s %s" % (dtype, kind), "sparse-softmax-xent",
                         lambda x, y: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
                         [logits, m.ints(0, 9, (6,), kind)], wrt=[0], terms=40,
                         expected=lambda x, y: -_log_softmax(x)[np.arange(6), y.astype(int)],
                         modes=ALL if (dtype, kind) == ("float32", "int64") else EAGER)
    yield m.case("softmax_cross_entropy along axis 1", "softmax-xent",
                 lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x, dim=1),
                 [m.real((3, 4, 5)), m.real((3, 4, 5), low=0)], wrt=[0, 1], terms=40, modes=STATIC)
    yield m.case("softmax_cross_entropy of nothing", "softmax-xent",
                 lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
                 [m.real((0, 5)), m.real((0, 5))], wrt=[0])
    yield m.case("the fused op broadcasts", "softmax-xent",
                 lambda x, y: gen_nn_ops.softmax_cross_entropy_with_logits(x, y),
                 [m.real((4, 5)), m.real((1, 5), low=0)], terms=40, modes=STATIC)
    yield m.case("sparse_softmax_cross_entropy of sequences", "sparse-softmax-xent",
                 lambda x, y: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
                 [m.real((3, 4, 5)), m.ints(0, 5, (3, 4))], wrt=[0], terms=40, modes=DIMS)
    yield m.case("sparse_softmax_cross_entropy of nothing", "sparse-softmax-xent",
                 lambda x, y: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
                 [m.real((0, 5)), m.ints(0, 5, (0,))], wrt=[0])
    infinite = m.real((3, 4))
    infinite[0, 1] = -np.inf
    yield m.case("sparse_softmax_cross_entropy of infinite logits", "sparse-softmax-xent",
                 lambda x, y: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x),
                 [infinite, np.array([0, 1, 2], "int32")], wrt=[0], terms=40)


def norms(tf, tf1, m, version):
    def call(data_format="NHWC"):
        return lambda x, s, o, mean, variance: tf1.nn.fused_batch_norm(
            x, s, o, mean=mean, variance=variance, is_training=False, data_format=data_format, epsilon=0.01)[0]
    for dtype in ("float32",) if version < (2, 4) else ("float32", "float16"):  # old CPU kernels abort
        for shape in ((2, 3, 4, 5), (1, 1, 1, 1), (0, 3, 4, 2)):
            vectors = [m.real(shape[-1:], low=0.5, high=2) for _ in range(4)]
            yield m.case("fused_batch_norm frozen %s %s" % (dtype, shape), "fused-batch-norm-inference", call(),
                         [m.real(shape, dtype)] + vectors, wrt=[0, 1, 2], second=dtype == "float32" and 0 not in shape,
                         terms=60, modes=DIMS if shape[0] == 2 and dtype == "float32" else EAGER)


def _scatter(shape, indices, updates):
    out = np.zeros(shape, updates.dtype)
    depth = indices.shape[-1]
    flat = updates.reshape((-1,) + tuple(shape[depth:]))
    for place, row in zip(indices.reshape(-1, depth).astype(int), flat):
        out[tuple(place)] += row
    return out


def scatters(tf, tf1, m, version):
    shapes = (((7, 2), 1, (30,)), ((4, 5), 2, (6, 5)), ((3, 4, 2), 2, (20,)), ((5,), 1, (0,)), ((6,), 1, (1,)))
    for dtype in FLOATS + ("complex64",):
        for shape, depth, many in shapes if dtype == "float32" else shapes[1:3]:
            indices = np.stack([m.ints(0, size, many) for size in shape[:depth]], -1)
            updates = m.real(many + shape[depth:], dtype)
            label = "%s %s in %s by %d" % (dtype, many, shape, depth)
            yield m.case("scatter_nd " + label, "scatter-nd", lambda i, u, s: tf.scatter_nd(i, u, s),
                         [indices.astype("int64"), updates, np.array(shape, "int64")], wrt=[1], second=True, terms=40,
                         expected=lambda i, u, s: _scatter([int(n) for n in s], i, u),
                         modes=ALL if dtype == "float32" and shape == (4, 5) else EAGER)
            target = m.real(shape, dtype)
            for name, sign in (("add", 1), ("sub", -1)):
                function = _tensor_scatter(tf, name)
                yield m.case("tensor_scatter_nd_%s %s" % (name, label), "tensor-scatter-nd", function,
                             [target, indices, updates], wrt=[0, 2], second=True, terms=40,
                             expected=lambda t, i, u, sign=sign: t + sign * _scatter(t.shape, i, u),
                             modes=ALL if name == "add" and dtype == "float32" and shape == (4, 5) else EAGER)
            yield m.case("tensor_scatter_nd_update " + label, "tensor-scatter-nd", _tensor_scatter(tf, "update"),
                         [target, indices, updates], wrt=[0], terms=40,
                         modes=ALL if dtype == "float32" and shape == (4, 5) else EAGER)
    for dtype in ("int32", "int64", "bool"):
        indices = m.ints(0, 5, (9, 1))
        yield m.case("tensor_scatter_nd_update " + dtype, "tensor-scatter-nd", _tensor_scatter(tf, "update"),
                     [m.ints(0, 2, (5, 2)).astype(dtype), indices, m.ints(0, 2, (9, 2)).astype(dtype)])
    yield m.case("scatter_nd int32", "scatter-nd", lambda i, u, s: tf.scatter_nd(i, u, s),
                 [m.ints(0, 4, (9, 1)), m.ints(0, 9, (9,)), np.array([4], "int32")])


def _tensor_scatter(tf, name):
    def call(*args):
        return getattr(tf, "tensor_scatter_nd_" + name)(*args)
    return call


def _into_variable(tf, tf1, scatter, resource):
    """A call that makes a variable of a tensor, scatters into it, and reads it; in a graph all of it in one run."""
    def call(value, indices, updates):
        # validate_shape: a variable of a shape that the graph does not know.
        variable = tf1.Variable(value, use_resource=resource, validate_shape=value.shape.is_fully_defined())
        with tf.control_dependencies([variable.initializer] if not tf1.executing_eagerly() else []):
            done = scatter(variable, indices, updates)
        if isinstance(done, tf.Operation) or done is None:
            with tf.control_dependencies([done] if done is not None else []):
                done = variable.read_value()
        return tf.identity(done)
    return call


def scattered(value, indices, updates, name):
    """What scatter_<name> does, one update after the other."""
    out, places = value.copy(), indices.astype(int)
    operators = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                 "update": lambda old, new: new}
    if name.startswith("nd_"):
        places = [tuple(place) for place in places.reshape(-1, places.shape[-1])]
        rows = updates.reshape((len(places),) + value.shape[indices.shape[-1]:])
    else:
        places = list(places.reshape(-1))
        rows = np.broadcast_to(updates, indices.shape + value.shape[1:]).reshape((len(places),) + value.shape[1:])
    for place, row in zip(places, rows):
        out[place] = operators[name.replace("nd_", "")](out[place], row)
    return out


def variables(tf, tf1, m, version):
    from tensorflow.python.ops import gen_resource_variable_ops

    def scatter(name, resource):
        if resource and not name.startswith("nd_"):
            raw = getattr(gen_resource_variable_ops, "resource_scatter_" + name)
            return lambda variable, *others: raw(variable.handle, *others)
        return lambda *args: getattr(tf1, "scatter_" + name)(*args)

    for resource in (True, False):
        modes = ALL if resource else ALL[1:]  # there are no reference variables without a graph
        key = "resource-scatter" if resource else "ref-scatter"
        kind = "resource" if resource else "ref"
        for name in ("add", "sub", "mul", "div", "update"):
            call = _into_variable(tf, tf1, scatter(name, resource), resource)
            unknown = modes if name in ("add", "update") else modes[:1]
            for dtype in FLOATS + ("complex64",) if resource and name != "sub" else ("float32",):
                for shape, many in (((7, 2), (30,)), ((4, 2, 3), (5, 6)), ((5,), (90,)), ((4, 2), (0,)), ((3, 2), ())):
                    if shape != (7, 2) and (dtype != "float32" or not resource):
                        continue
                    numbers = [m.real(shape, dtype, 0.6, 1.4), m.ints(0, shape[0], many),
                               m.real(many + shape[1:], dtype, 0.6, 1.4)]
                    yield m.case("%s scatter_%s %s %s into %s" % (kind, name, dtype, many, shape), key, call, numbers,
                                 terms=100, expected=lambda v, i, u, name=name: scattered(v, i, u, name),
                                 modes=unknown if (dtype, shape) == ("float32", (7, 2)) else modes[:1])
            yield m.case("%s scatter_%s of a scalar" % (kind, name), key, call,
                         [m.real((7, 2)), m.ints(0, 7, (9,), "int64"), np.float32(1.25)], terms=20,
                         modes=modes if name == "add" else modes[:1],
                         expected=lambda v, i, u, name=name: scattered(v, i, u, name))
        for name in ("nd_add", "nd_sub", "nd_update"):
            call = _into_variable(tf, tf1, scatter(name, resource), resource)
            for shape, depth, many in (((7, 2), 1, (30,)), ((4, 5), 2, (6, 5)), ((3, 4, 2), 2, (70,)), ((5,), 1, (0,))):
                indices = np.stack([m.ints(0, size, many) for size in shape[:depth]], -1)
                yield m.case("%s scatter_%s %s into %s by %d" % (kind, name, many, shape, depth),
                             "scatter-nd-variable", call, [m.real(shape), indices, m.real(many + shape[depth:])],
                             terms=80, expected=lambda v, i, u, name=name: scattered(v, i, u, name),
                             modes=modes if (name, shape) == ("nd_add", (3, 4, 2)) else modes[:1])
        for dtype in ("int32", "int64", "bool"):
            yield m.case("%s scatter_update %s" % (kind, dtype), key,
                         _into_variable(tf, tf1, scatter("update", resource), resource),
                         [m.ints(0, 2, (5, 2)).astype(dtype), m.ints(0, 5, (9,)), m.ints(0, 2, (9, 2)).astype(dtype)],
                         modes=modes[:1])
    yield m.case("Variable.scatter_add", "resource-scatter", _into_variable(
        tf, tf1, lambda v, i, u: v.scatter_add(tf.IndexedSlices(u, i)), True),
        [m.real((6, 3)), m.ints(0, 6, (40,)), m.real((40, 3))], terms=40, modes=DIMS)
    yield m.case("Variable.scatter_nd_sub", "scatter-nd-variable", _into_variable(
        tf, tf1, lambda v, i, u: v.scatter_nd_sub(i, u), True),
        [m.real((6, 3)), m.ints(0, 6, (40, 1)), m.real((40, 3))], terms=40, modes=DIMS)
    yield m.case("gradient descent on rows", "resource-scatter", _into_variable(
        tf, tf1, lambda v, i, u: tf1.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.IndexedSlices(u, i), v)]),
        True), [m.real((6, 3)), m.ints(0, 6, (40,)), m.real((40, 3))], terms=40, modes=DIMS)


def histograms(tf, tf1, m, version):
    for dtype in ("float32", "float64"):
        for many in ((0,), (1,), (60,), (5, 7)):
            values, weights = m.ints(0, 7, many), m.real(many, dtype)
            yield m.case("bincount %s weights %s" % (dtype, many), "bincount",
                         lambda v, w: tf.math.bincount(v, weights=w, minlength=6, maxlength=7), [values, weights],
                         terms=60, modes=DIMS if dtype == "float32" and many == (5, 7) else EAGER)
    from tensorflow.python.ops import gen_math_ops
    yield m.case("the Bincount op", "bincount", lambda v, w: gen_math_ops.bincount(v, 6, w),
                 [m.ints(0, 9, (4, 8)), m.real((4, 8), "float64")], terms=32,
                 expected=lambda v, w: np.bincount(v.reshape(-1).astype(int), w.reshape(-1), 9)[:6])
    if hasattr(gen_math_ops, "dense_bincount"):
        for many in ((40,), (3, 9), (0,), (2, 0), (0, 3)):
            yield m.case("the DenseBincount op %s" % (many,), "bincount",
                         lambda v, w: gen_math_ops.dense_bincount(v, 6, w),
                         [m.ints(0, 9, many), m.real(many)], terms=40)
        yield m.case("bincount along rows", "bincount",
                     lambda v, w: tf.math.bincount(v, weights=w, minlength=6, maxlength=6, axis=-1),
                     [m.ints(0, 6, (3, 9)), m.real((3, 9))], terms=40, modes=STATIC)


def products(tf, tf1, m, version):
    tf_sparse = tf.sparse
    matmul = getattr(tf_sparse, "sparse_dense_matmul", None) or tf.sparse_tensor_dense_matmul

    def call(adjoint_a, adjoint_b):
        return lambda indices, values, shape, b: matmul(
            tf.SparseTensor(indices, values, shape), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for adjoint_a in (False, True):
            for adjoint_b in (False, True):
                dense = m.ints(0, 2, (4, 6))
                indices = np.argwhere(dense).astype("int64")
                values, b = m.real((len(indices),), dtype), m.real((4, 3) if adjoint_a else (6, 3), dtype)
                b = np.ascontiguousarray(b.T) if adjoint_b else b
                yield m.case("sparse_dense_matmul %s %s %s" % (dtype, adjoint_a, adjoint_b), "sparse-dense-matmul",
                             call(adjoint_a, adjoint_b), [indices, values, np.array([4, 6], "int64"), b],
                             wrt=[1, 3] if not dtype.startswith("complex") or version >= (2, 5) else [],
                             terms=30, second=not dtype.startswith("complex"),
                             modes=DIMS if dtype == "float32" and adjoint_a > adjoint_b else EAGER)
    yield m.case("sparse_dense_matmul of nothing", "sparse-dense-matmul", call(False, False),
                 [np.zeros((0, 2), "int64"), np.zeros((0,), "float32"), np.array([4, 6], "int64"), m.real((6, 3))],
                 wrt=[1, 3])


def depthwise(tf, tf1, m, version):
    def call(strides, padding):
        return lambda x, w: tf1.nn.depthwise_conv2d_native(x, w, [1, strides, strides, 1], padding)
    for dtype in FLOATS:
        for size, taps, strides, padding in (((8, 7), (3, 3), 1, "SAME"), ((8, 7), (3, 2), 2, "SAME"),
                                             ((9, 8), (3, 3), 2, "VALID"), ((5, 5), (1, 1), 1, "VALID"),
                                             ((4, 4), (4, 4), 1, "VALID"), ((7, 9), (2, 5), 3, "SAME")):
            for multiplier in (1, 2):
                x, w = m.real((2,) + size + (3,), dtype), m.real(taps + (3, multiplier), dtype)
                yield m.case("depthwise_conv2d %s %s by %s, stride %d, %s, %d" % (
                    dtype, size, taps, strides, padding, multiplier), "depthwise-conv-filter", call(strides, padding),
                    [x, w], wrt=[0, 1], second=True, terms=130,
                    modes=DIMS if dtype == "float32" and strides == 2 and multiplier == 2 else EAGER)
    yield m.case("depthwise_conv2d dilated", "depthwise-conv-filter",
                 lambda x, w: tf1.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2]),
                 [m.real((2, 9, 9, 2)), m.real((3, 3, 2, 2))], wrt=[0, 1], terms=170, modes=STATIC)


def contrasts(tf, tf1, m, version):
    for shape in ((4, 5, 3), (2, 4, 5, 3), (2, 1, 4, 5, 1), (1, 1, 1)):
        yield m.case("adjust_contrast %s" % (shape,), "adjust-contrast",
                     lambda x: tf.image.adjust_contrast(x, 1.7), [m.real(shape)], terms=30,
                     modes=DIMS if shape[0] == 2 else EAGER,
                     expected=lambda x: (x - x.mean((-3, -2), keepdims=True)) * np.float32(1.7)
                     + x.mean((-3, -2), keepdims=True))
    yield m.case("adjust_contrast uint8", "adjust-contrast", lambda x: tf.image.adjust_contrast(x, 0.4),
                 [m.ints(0, 255, (2, 4, 5, 3), "uint8")], terms=30)
