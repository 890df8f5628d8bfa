"""Inside an environment, on the CPU: time (s) and memory (MiB) of each patched op and of the original, both ways.

Usage: python inside_patches.py REPEATS        one JSON line for each op
Each measurement has a forked process of its own, so that its peak of memory is its own.
"""

import json
import os
import resource
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_math_ops

from tfdeterminism.patches import PATCHES, Replacements

tf1 = getattr(tf.compat, "v1", tf)
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
RANDOM = np.random.RandomState(7)


def real(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def ints(high, *shape):
    return RANDOM.randint(0, high, shape).astype("int32")


def fed(array):
    """The array as an input of the graph: what hangs on a constant would be computed once, for ever."""
    return tf1.placeholder_with_default(array, array.shape)


def calls():
    """patch key -> (what, function, inputs to differentiate): sizes as in training."""
    ids, sorted_ids = ints(2000, 20000), np.sort(ints(2000, 20000))
    pixels, places = np.zeros((256,), "int32"), ints(50, 20000, 1)
    nonzero = np.unique(ints(2000, 20000, 2), axis=0).astype("int64")
    labels = ints(1000, 256)
    hot = np.eye(1000, dtype="float32")[labels]
    boxes = np.sort(RANDOM.uniform(0, 1, (256, 2, 2)), axis=1).reshape(256, 4).astype("float32")
    mean, variance = real(64), 1 + real(64) ** 2
    return {
        "bias-add": ("32x56x56x64", lambda x, b: tf.nn.bias_add(x, b), [real(32, 56, 56, 64), real(64)]),
        "segment": ("20000x64 to 2000", lambda d: tf.math.segment_sum(d, fed(sorted_ids)), [real(20000, 64)]),
        "unsorted-segment": ("gather 20000 of 2000x64", lambda p: tf.gather(p, fed(ids)), [real(2000, 64)]),
        "resize-bilinear": (
            "8x64x64x32 to 128x128",
            lambda x: tf1.image.resize_bilinear(x, [128, 128]),
            [real(8, 64, 64, 32)],
        ),
        "resize-nearest": (
            "8x64x64x32 to 128x128",
            lambda x: tf1.image.resize_nearest_neighbor(x, [128, 128]),
            [real(8, 64, 64, 32)],
        ),
        "crop-and-resize": (
            "256 boxes of 7x7x64 from 50x50",
            lambda x, b: tf1.image.crop_and_resize(x, b, fed(pixels), [7, 7]),
            [real(1, 50, 50, 64), boxes],
        ),
        "softmax-xent": (
            "256x1000",
            lambda x: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=fed(hot), logits=x),
            [real(256, 1000)],
        ),
        "sparse-softmax-xent": (
            "256x1000",
            lambda x: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=fed(labels), logits=x),
            [real(256, 1000)],
        ),
        "fused-batch-norm-inference": (
            "32x28x28x64",
            lambda x, s, o: tf1.nn.fused_batch_norm(x, s, o, mean=mean, variance=variance, is_training=False)[0],
            [real(32, 28, 28, 64), real(64), real(64)],
        ),
        "scatter-nd": ("20000x64 to 50x64", lambda u: tf.scatter_nd(fed(places), u, [50, 64]), [real(20000, 64)]),
        "tensor-scatter-nd": (
            "20000x64 to 50x64",
            lambda t, u: tf.tensor_scatter_nd_add(t, fed(places), u),
            [real(50, 64), real(20000, 64)],
        ),
        "resource-scatter": ("20000x64 into 2000x64", into_variable("add", ids, True), [real(20000, 64)]),
        "ref-scatter": ("20000x64 into 2000x64", into_variable("add", ids, False), [real(20000, 64)]),
        "scatter-nd-variable": ("20000x64 into 50x64", into_variable("nd_add", places, True), [real(20000, 64)]),
        "bincount": (
            "20000 weights, 2000 bins",
            lambda w: gen_math_ops.bincount(fed(ids), 2000, w),
            [real(20000)],
        ),
        "sparse-dense-matmul": (
            "20000 non-zeros, 2000x2000 by 2000x32",
            lambda v, b: tf.sparse.sparse_dense_matmul(tf.SparseTensor(fed(nonzero), v, [2000, 2000]), b),
            [real(len(nonzero)), real(2000, 32)],
        ),
        "depthwise-conv-filter": (
            "16x56x56x64 by 3x3",
            lambda x, w: tf1.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME"),
            [real(16, 56, 56, 64), real(3, 3, 64, 1)],
        ),
        "adjust-contrast": ("16x224x224x3", lambda x: tf.image.adjust_contrast(x, 1.5), [real(16, 224, 224, 3)]),
    }


def into_variable(name, indices, resource):
    """A scatter into a variable that is zero again for every run."""

    def call(updates):
        variable = tf1.Variable(np.zeros((int(indices.max()) + 1, 64), "float32"), use_resource=resource)
        with tf.control_dependencies([variable.initializer]):
            return tf.identity(getattr(tf1, "scatter_" + name)(variable, fed(indices), updates))

    return call


def measured(call, inputs, patch, repeats):
    """(median seconds, MiB above what the process had) of one forward and backward run in a fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, json.dumps(_measure(call, inputs, patch, repeats)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def _measure(call, inputs, patch, repeats):
    if patch is not None:
        patch.install(Replacements())
    with tf.Graph().as_default(), tf1.Session() as session:
        holders = [tf1.placeholder(array.dtype, array.shape) for array in inputs]
        result = call(*holders)
        # The upstream gradient is fed: Grappler would compute that of a linear op once, for ever.
        upstream = tf1.placeholder(result.dtype, result.shape)
        try:
            grads = tf1.gradients(result, holders, [upstream])
            outputs = [tf.convert_to_tensor(one) for one in grads if one is not None]
        except LookupError:  # AdjustContrastv2 and Bincount have no gradient
            outputs = []
        run = session.make_callable(tf.group(result, *outputs), [*holders, upstream])
        inputs = [*inputs, RANDOM.uniform(-1, 1, [n or 1 for n in result.shape.as_list()]).astype("float32")]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        run(*inputs)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            run(*inputs)
            times.append(time.perf_counter() - start)
        return sorted(times)[len(times) // 2], (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0


def main():
    for key, (size, call, inputs) in calls().items():
        if not PATCHES[key].applies(VERSION):
            continue
        original = measured(call, inputs, None, int(sys.argv[1]))
        patched = measured(call, inputs, PATCHES[key], int(sys.argv[1]))
        if original is None or patched is None:
            sys.exit(key + ": the measuring process died")
        print(
            json.dumps(
                {
                    "patch": key,
                    "size": size,
                    "seconds": patched[0],
                    "original_seconds": original[0],
                    "mib": patched[1],
                    "original_mib": original[1],
                    "repeats": int(sys.argv[1]),
                    "tensorflow": tf.__version__,
                }
            )
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
