"""Cases of the patches of layers and losses.

Each function yields cases, made by `m`, a making_checks.Maker. Of a case: wrt: which inputs to differentiate by;
second: whether to test second derivatives, too; terms: how many numbers a result sums at most, which bounds its error;
modes: eager, and in graphs that know the shape (STATIC), also the number of dimensions alone (DIMS) or nothing (ALL).
"""

import numpy as np
from making_checks import ALL, DIMS, EAGER, FLOATS, STATIC


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


def depthwise(tf, tf1, m, version):
    def call(strides, padding):
        return lambda x, w: tf1.nn.depthwise_conv2d_native(x, w, [1, strides, strides, 1], padding)
    for dtype in FLOATS:
        for size, taps, strides, padding in (((8, 7), (3, 3), 1, "SAME"), ((8, 7), (3, 2), 2, "SAME"),
                                             ((9, 8), (3, 3), 2, "VALID"), ((5, 5), (1, 1), 1, "VALID"),
                                             ((4, 4), (4, 4), 1, "VALID"), ((7, 9), (2, 5), 3, "SAME")):
            for multiplier in (1, 2):
                x, filters = m.real((2,) + size + (3,), dtype), m.real(taps + (3, multiplier), dtype)
                yield m.case("depthwise_conv2d %s %s by %s, stride %d, %s, %d" % (
                    dtype, size, taps, strides, padding, multiplier), "depthwise-conv-filter", call(strides, padding),
                    [x, filters], wrt=[0, 1], second=True, terms=130,
                    modes=DIMS if dtype == "float32" and strides == 2 and multiplier == 2 else EAGER)
    yield m.case("depthwise_conv2d dilated", "depthwise-conv-filter",
                 lambda x, w: tf1.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2]),
                 [m.real((2, 9, 9, 2)), m.real((3, 3, 2, 2))], wrt=[0, 1], terms=170, modes=STATIC)
