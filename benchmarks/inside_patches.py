"""Inside an environment, on the CPU: what each patched op and its original take, at real sizes and at their smallest.

Usage: python inside_patches.py REPEATS [WORD...]        one JSON line for each case (those whose text holds a word)
Each measurement has a forked process of its own, so that its peak of memory is its own.  Timed are the very outputs
that the patch replaces, fetched as a program would: TensorFlow leaves out an op whose output nobody asks for.  That
both really computed is shown by the profile of a run, which has to hold the original op, or must not, and by their
results, which have to agree.
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

from tfdeterminism.patches import PATCHES, Replacements

tf1 = getattr(tf.compat, "v1", tf)
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
RANDOM = np.random.RandomState(7)
SMALL_CALLS = 200  # eager calls are short: the median of that many


class Case:
    """One call of what a patch replaces.

    op: the type of the original op.  inputs(small): the arrays it is called with, as they are in a training or as
    small as can be.  call(*tensors): the outputs.  eager: whether call works eagerly too.  kept: whether the patched
    form ends in the same op, on what it has made of its inputs.
    """

    def __init__(self, patch, op, size, inputs, call, eager=True, kept=False):
        self.patch, self.op, self.size, self.inputs, self.call = patch, op, size, inputs, call
        self.eager, self.kept = eager, kept

    def line(self, repeats):
        """What was measured, as JSON knows it; an AssertionError where it proves nothing."""
        arrays = self.inputs(False)  # made before: their making is not measured
        original = forked(_graph, self, None, arrays, repeats)
        patched = forked(_graph, self, PATCHES[self.patch], arrays, repeats)
        self.compare(original, patched)
        small = [
            forked(_eager, self, patch) if self.eager and VERSION >= (2, 0) else None
            for patch in (None, PATCHES[self.patch])
        ]
        return {
            "patch": self.patch,
            "size": self.size,
            "repeats": repeats,
            "tensorflow": tf.__version__,
            "original_seconds": original["seconds"],
            "seconds": patched["seconds"],
            "original_mib": original["mib"],
            "mib": patched["mib"],
            "original_eager_seconds": small[0],
            "eager_seconds": small[1],
        }

    def compare(self, original, patched):
        assert self.op in original["ran"], self.size + ": the profile holds no " + self.op
        assert self.kept == (self.op in patched["ran"]), self.size + ": not what the patched run should run: " + self.op
        assert len(original["results"]) == len(patched["results"])
        for old, new in zip(original["results"], patched["results"]):  # noqa: B905 (Python 3.7 has to read it)
            old, new = np.array(old), np.array(new)
            assert old.shape == new.shape, self.size + ": the results have other shapes"
            # Not all of them: the original gradient of crops loses some, since its threads race.
            differ = (np.abs(old - new) > 1e-3 * np.abs(old).max()).mean()
            assert differ < 0.01, f"{self.size}: {differ:.1%} of the results differ"


def forked(measure, *arguments):
    """measure(*arguments) in a process of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(json.dumps(measure(*arguments)).encode())
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0 and text, "the measuring process died"
    return json.loads(text.decode())


def _graph(case, patch, arrays, repeats):
    """Median seconds and peak MiB of a session's runs (with inputs and outputs); what ran; a sample of results."""
    if patch is not None:
        patch.install(Replacements())
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        holders = [tf1.placeholder(array.dtype, array.shape) for array in arrays]
        outputs = [tf.convert_to_tensor(output) for output in _flat(case.call(*holders))]
        session.run(tf1.global_variables_initializer())
        before = _peak()
        run = session.make_callable(outputs, holders)
        run(*arrays)
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            results = run(*arrays)
            times.append(time.perf_counter() - start)
        peak = _peak()
        profile = tf1.RunMetadata()
        traced = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        session.run(
            outputs, {holders[i]: array for i, array in enumerate(arrays)}, options=traced, run_metadata=profile
        )
        return {
            "seconds": sorted(times)[len(times) // 2],
            "mib": (peak - before) / 1024.0,
            "ran": _ran(graph, profile),
            "results": [_sample(result) for result in results],
        }


def _ran(graph, profile):
    """The op types that a run executed; but for exact sums, whose additions are no longer order-dependent."""
    labels = [
        stats.timeline_label + " " + stats.node_name
        for device in profile.step_stats.dev_stats
        for stats in device.node_stats
    ]
    named = {op.name: op.type for op in graph.get_operations()}
    found = set()
    for label in labels:
        if "ExactSum" not in label:
            found.update([label.partition(" = ")[2].partition("(")[0], named.get(label.rpartition(" ")[2], "")])
    return sorted(found - {""})


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _sample(result):
    flat = np.asarray(result, "float64").reshape(-1)
    return flat[:: max(1, flat.size // 1000)].tolist()


def _flat(result):
    return [output for output in result if output is not None] if isinstance(result, (list, tuple)) else [result]


def _eager(case, patch):
    """Median seconds of one small eager call."""
    if patch is not None:
        patch.install(Replacements())
    tensors = [tf.constant(array) for array in case.inputs(True)]
    times = []
    for _ in range(SMALL_CALLS):
        start = time.perf_counter()
        case.call(*tensors)
        times.append(time.perf_counter() - start)
    return sorted(times)[SMALL_CALLS // 2]


def raw(module, name):
    """The generated function as it is now, patched or not."""
    return getattr(__import__("tensorflow.python.ops." + module, fromlist=[module]), name)


def real(*shape):
    return RANDOM.uniform(-1, 1, shape).astype("float32")


def ints(high, *shape):
    return RANDOM.randint(0, high, shape).astype("int32")


def sizes(large, small, make):
    """inputs(small) for make(*sizes)."""
    return lambda is_small: make(*(small if is_small else large))


def cases():
    return [*reductions(), *scatters(), *images(), *losses(), *others()]


def reductions():
    def rows(many, width, count):
        return [real(many, width), np.append(ints(count, many - 1), count - 1).astype("int32")]

    def ascending(*of):
        data, ids = rows(*of)
        return [data, np.sort(ids)]

    def gather_gradient(params, ids, up):
        return tf1.gradients(tf.gather(params, ids), params, [up])

    large, small = (1000000, 64, 2000), (6, 2, 3)
    cells = (1000000, 50000, 64)
    return [
        Case(
            "segment",
            "SegmentSum",
            "segment_sum of 1000000x64 to 2000",
            sizes(large, small, ascending),
            lambda d, i: raw("gen_math_ops", "segment_sum")(d, i),
        ),
        Case(
            "unsorted-segment",
            "UnsortedSegmentSum",
            "unsorted_segment_sum of 1000000x64 to 2000",
            sizes(large, small, rows),
            lambda d, i: raw("gen_math_ops", "unsorted_segment_sum")(d, i, int(large[2]) if d.shape[0] > 6 else 3),
        ),
        Case(
            "unsorted-segment",
            "UnsortedSegmentSum",
            "gradient of gather, 65536 rows of 50000x256",
            lambda small: [real(50000, 256), ints(50000, 65536), real(65536, 256)],
            gather_gradient,
            eager=False,
        ),
        Case(
            "bincount",
            "Bincount",
            "bincount of 10000000 weights, 1000 bins",
            sizes((10000000,), (6,), lambda many: [ints(1000, many), real(many)]),
            lambda i, w: raw("gen_math_ops", "bincount")(i, 1000, w),
        ),
        Case(
            "sparse-dense-matmul",
            "SparseTensorDenseMatMul",
            "sparse_dense_matmul of 1000000 non-zeros in 50000x50000 by 50000x64",
            sizes(
                cells,
                (6, 3, 2),
                lambda many, edge, width: [np.unique(ints(edge, many, 2), axis=0).astype("int64"), real(edge, width)],
            ),
            lambda at, b: raw("gen_sparse_ops", "sparse_tensor_dense_mat_mul")(
                at, tf.ones([at.shape[0]]) * 0.3, np.array([int(b.shape[0])] * 2), b
            ),
        ),
    ]


def scatters():
    def updates(many, count, width):
        return [ints(count, many, 1), real(many, width)]

    def onto(*of):
        return [*updates(*of), real(of[1], of[2])]

    def into_variable(name, resource, nested):
        def call(indices, updates):
            start = np.zeros((50000, int(updates.shape[1])), "float32")
            variable = tf1.get_variable(name, initializer=start, use_resource=resource)
            done = getattr(tf1, name)(variable, indices if nested else indices[:, 0], updates)
            with tf.control_dependencies([done]):
                return tf.identity(variable[:1])

        return call

    large, small = (200000, 50000, 64), (6, 3, 2)
    size = "200000 rows into 50000x64"
    return [
        Case(
            "scatter-nd",
            "ScatterNd",
            "scatter_nd, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "scatter_nd")(i, u, [int(n) for n in t.shape]),
        ),
        Case(
            "tensor-scatter-nd",
            "TensorScatterAdd",
            "tensor_scatter_nd_add, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "tensor_scatter_add")(t, i, u),
        ),
        Case(
            "tensor-scatter-nd",
            "TensorScatterUpdate",
            "tensor_scatter_nd_update, " + size,
            sizes(large, small, onto),
            lambda i, u, t: raw("gen_array_ops", "tensor_scatter_update")(t, i, u),
        ),
        Case(
            "resource-scatter",
            "ResourceScatterAdd",
            "scatter_add, resource variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_add", True, False),
            eager=False,
            kept=True,
        ),
        Case(
            "ref-scatter",
            "ScatterAdd",
            "scatter_add, reference variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_add", False, False),
            eager=False,
            kept=True,
        ),
        Case(
            "scatter-nd-variable",
            "ResourceScatterNdAdd",
            "scatter_nd_add, resource variable, " + size,
            sizes(large, small, updates),
            into_variable("scatter_nd_add", True, True),
            eager=False,
            kept=True,
        ),
    ]


def images():
    def resized(batch, edge, depth):
        return [real(batch, 2 * edge, 2 * edge, depth), real(batch, edge, edge, depth)]

    def crops(many, edge, depth, size):
        boxes = np.sort(RANDOM.uniform(0, 1, (many, 2, 2)), axis=1).reshape(many, 4).astype("float32")
        return [real(many, edge, edge, depth), boxes, ints(4, many), real(4, size, size, depth)]

    large, small = (8, 64, 64), (1, 2, 1)
    many = (64, 28, 256, 64), (2, 2, 1, 4)
    return [
        Case(
            "resize-bilinear",
            "ResizeBilinearGrad",
            "gradient of resizing 8x64x64x64 to 128x128",
            sizes(large, small, resized),
            lambda g, x: raw("gen_image_ops", "resize_bilinear_grad")(g, x),
        ),
        Case(
            "resize-nearest",
            "ResizeNearestNeighborGrad",
            "gradient of resizing 8x64x64x64 to 128x128",
            sizes(large, small, resized),
            lambda g, x: raw("gen_image_ops", "resize_nearest_neighbor_grad")(g, [int(n) for n in x.shape[1:3]]),
        ),
        Case(
            "crop-and-resize",
            "CropAndResizeGradImage",
            "gradient to the image of 64 crops of 28x28x256 from 64x64",
            sizes(*many, make=crops),
            lambda g, b, i, x: raw("gen_image_ops", "crop_and_resize_grad_image")(
                g, b, i, [int(n) for n in x.shape], tf.float32
            ),
        ),
        Case(
            "crop-and-resize",
            "CropAndResizeGradBoxes",
            "gradient to the boxes of 64 crops of 28x28x256 from 64x64",
            sizes(*many, make=crops),
            lambda g, b, i, x: raw("gen_image_ops", "crop_and_resize_grad_boxes")(g, x, b, i),
        ),
        Case(
            "adjust-contrast",
            "AdjustContrastv2",
            "16x224x224x3",
            sizes((16, 224), (1, 2), lambda many, edge: [real(many, edge, edge, 3)]),
            lambda x: raw("gen_image_ops", "adjust_contrastv2")(x, 1.5),
        ),
    ]


def losses():
    def labelled(many, classes):
        return [real(many, classes), ints(classes, many)]

    def hot(many, classes):
        return [real(many, classes), np.eye(classes, dtype="float32")[ints(classes, many)]]

    large, small = (4096, 1000), (2, 3)
    return [
        Case(
            "softmax-xent",
            "SoftmaxCrossEntropyWithLogits",
            "4096x1000",
            sizes(large, small, hot),
            lambda x, y: list(raw("gen_nn_ops", "softmax_cross_entropy_with_logits")(x, y)),
        ),
        Case(
            "sparse-softmax-xent",
            "SparseSoftmaxCrossEntropyWithLogits",
            "4096x1000",
            sizes(large, small, labelled),
            lambda x, y: list(raw("gen_nn_ops", "sparse_softmax_cross_entropy_with_logits")(x, y)),
        ),
    ]


def others():
    def channels(batch, edge, depth):
        return [real(batch, edge, edge, depth), real(batch, edge, edge, depth), 1 + real(depth) ** 2]

    def filtered(batch, edge, depth):
        return [real(batch, edge, edge, depth), real(batch, edge, edge, depth)]

    large, small = (32, 56, 64), (1, 2, 1)
    return [
        Case(
            "bias-add",
            "BiasAddGrad",
            "gradient to the bias of 32x56x56x64",
            sizes(large, small, filtered),
            lambda g, x: raw("gen_nn_ops", "bias_add_grad")(g),
        ),
        Case(
            "fused-batch-norm-inference",
            "FusedBatchNormGrad",
            "gradients of 32x56x56x64",
            sizes(large, small, channels),
            lambda g, x, s: list(raw("gen_nn_ops", "fused_batch_norm_grad")(g, x, s, s, s, is_training=False))[:3],
        ),
        Case(
            "depthwise-conv-filter",
            "DepthwiseConv2dNativeBackpropFilter",
            "gradient to 3x3 filters of 16x56x56x64",
            sizes((16, 56, 64), small, filtered),
            lambda g, x: raw("gen_nn_ops", "depthwise_conv2d_native_backprop_filter")(
                x, [3, 3, int(x.shape[3]), 1], g, [1, 1, 1, 1], "SAME"
            ),
        ),
    ]


def main():
    repeats, words = int(sys.argv[1]), sys.argv[2:]
    for case in cases():
        text = case.patch + " " + case.size
        if not PATCHES[case.patch].applies(VERSION) or not any(word in text for word in words or [""]):
            continue
        print(json.dumps(case.line(repeats)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
