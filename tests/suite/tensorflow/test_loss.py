import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)

# @case gives the source of nondeterminism, patterns of the ops that must run, and the modes; unplaced: why no ops are
# checked.  make, a CaseBuilder, draws the inputs and returns what is run.


# Labels that are probabilities: each row sums to 1.
def shares(make, shape, dtype):
    labels = make.uniform(shape, dtype, low=0.0, high=1.0)
    return labels / labels.sum(axis=1, keepdims=True)


# Under determinism newer TensorFlows compute it from LogSoftmax.
@case("softmax-xent", ops=["SoftmaxCrossEntropyWithLogits|LogSoftmax"], modes=("eager", "session"),
      dtype=["float16", "float32"])
def softmax_xent(make, dtype):
    logits, labels = make.uniform((64, 1000), dtype), shares(make, (64, 1000), dtype)
    return make.gradient(lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
                         [logits, labels], wrt=[0, 1])


@case("softmax-xent", ops=["SoftmaxCrossEntropyWithLogits|LogSoftmax"], modes=("function",))
def softmax_xent_forward(make):
    logits, labels = make.uniform((1, 10000)), shares(make, (1, 10000), "float32")
    return make.forward(lambda x, y: tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
                        [logits, labels])


@case("sparse-softmax-xent", ops=["SparseSoftmaxCrossEntropyWithLogits|LogSoftmax"],
      modes=("eager", "session"), dtype=["float16", "float32"])
def sparse_softmax_xent(make, dtype):
    logits, labels = make.uniform((256, 1000), dtype), make.integers(0, 1000, (256,))
    return make.gradient(lambda x: tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x),
                         [logits], wrt=[0])


@case("ctc-loss", ops=["CTCLoss|CTCLossV2"], modes=("eager", "session"))
def ctc_loss(make):
    logits, cells = make.uniform((32, 8, 20)), [(b, t) for b in range(8) for t in range(6)]
    values = make.integers(0, 19, (48,))
    lengths = np.full(8, 32, "int32")
    return make.gradient(lambda x: tf1.nn.ctc_loss(
        tf.SparseTensor(cells, values, [8, 6]), x, lengths), [logits], wrt=[0])


@case("ctc-loss", modes=("function",), unplaced="another kernel on each kind of device")
def ctc_loss_dense(make):
    """With dense labels: composed of many ops on a CPU, cuDNN's kernel on a GPU."""
    logits, labels = make.uniform((16, 4, 10)), make.integers(1, 10, (4, 4))
    lengths, frames = np.full(4, 4, "int32"), np.full(4, 16, "int32")
    return make.gradient(lambda x: tf1.nn.ctc_loss_v2(
        labels, x, lengths, frames, blank_index=0), [logits], wrt=[0])
