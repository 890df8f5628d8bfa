"""Cases of sums and products over segments.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


@case("segment-sum", ops=["SegmentSum"], modes=("eager", "session"), dtype=["float16", "float32"])
def segment_sum(make, dtype):
    data, ids = make.uniform((4096, 8), dtype), np.sort(make.integers(0, 32, (4096,)))
    return make.forward(lambda d, i: tf.math.segment_sum(d, i), [data, ids])


@case("segment-mean", ops=["SegmentMean"], modes=("function",))
def segment_mean(make):
    data, ids = make.uniform((4096, 8)), np.sort(make.integers(0, 32, (4096,)))
    return make.forward(lambda d, i: tf.math.segment_mean(d, i), [data, ids])


@case("segment-prod", ops=["SegmentProd"], modes=("function",))
def segment_prod(make):
    data, ids = make.uniform((4096, 8), low=0.9, high=1.1), np.sort(make.integers(0, 32, (4096,)))
    return make.forward(lambda d, i: tf.math.segment_prod(d, i), [data, ids])


@case("unsorted-segment-sum", ops=["UnsortedSegmentSum"], modes=("eager", "session"),
      dtype=["float16", "float32"])
def unsorted_segment_sum(make, dtype):
    data, ids = make.uniform((4096, 8), dtype), make.integers(-1, 32, (4096,))
    return make.forward(lambda d, i: tf.math.unsorted_segment_sum(d, i, 32), [data, ids])


@case("unsorted-segment-mean", ops=["UnsortedSegmentSum"], modes=("function",))
def unsorted_segment_mean(make):
    data, ids = make.uniform((4096, 8)), make.integers(0, 32, (4096,))
    return make.forward(lambda d, i: tf.math.unsorted_segment_mean(d, i, 32), [data, ids])


@case("unsorted-segment-prod", ops=["UnsortedSegmentProd"], modes=("function",))
def unsorted_segment_prod(make):
    data, ids = make.uniform((4096, 8), low=0.9, high=1.1), make.integers(-1, 32, (4096,))
    return make.forward(lambda d, i: tf.math.unsorted_segment_prod(d, i, 32), [data, ids])


@case("unsorted-segment-sqrt-n", ops=["UnsortedSegmentSum"], modes=("function",))
def unsorted_segment_sqrt_n(make):
    data, ids = make.uniform((4096, 8)), make.integers(0, 32, (4096,))
    return make.forward(lambda d, i: tf.math.unsorted_segment_sqrt_n(d, i, 32), [data, ids])


@case("sparse-segment-ops", ops=["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"],
      modes=("eager", "session"))
def sparse_segment(make):
    data, rows = make.uniform((512, 8)), make.integers(0, 512, (4096,))
    ids = np.sort(make.integers(0, 32, (4096,)))
    return make.forward(lambda d, r, i: [
        tf1.sparse_segment_sum(d, r, i), tf1.sparse_segment_mean(d, r, i), tf1.sparse_segment_sqrt_n(d, r, i)],
        [data, rows, ids])


@case("sparse-segment-ops", ops=["SparseSegmentMeanGrad|SparseSegmentMeanGradV2"],
      modes=("eager", "session"))
def sparse_segment_mean_to_data(make):
    data, rows = make.uniform((64, 8)), make.integers(0, 64, (4096,))
    ids = np.concatenate([np.arange(32), np.sort(make.integers(0, 32, (4064,)))])
    ids = np.sort(ids).astype("int32")
    shaped = lambda y: tf1.placeholder_with_default(y, [32, 8]) if not y.shape.is_fully_defined() else y
    return make.gradient(lambda d: shaped(tf1.sparse_segment_mean(d, rows, ids)), [data], wrt=[0])


@case("gather-backprop", ops=["UnsortedSegmentSum"], dtype=["float16", "float32"])
def gather_backprop(make, dtype):
    """The sparse gradient of repeated indices is summed where it becomes dense."""
    params, indices = make.uniform((64, 8), dtype), make.integers(0, 64, (4096,))
    return make.gradient(lambda p: tf.gather(p, indices), [params], wrt=[0])


@case("convert-to-tensor-indexed-slices", ops=["UnsortedSegmentSum"], modes=("eager", "session"))
def indexed_slices(make):
    values, indices = make.uniform((4096, 4)), make.integers(0, 64, (4096,))
    return make.forward(lambda v, i: tf.convert_to_tensor(
        tf.IndexedSlices(v, i, dense_shape=tf.constant([64, 4]))), [values, indices])
