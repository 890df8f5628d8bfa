"""Ops whose shipped GPU code adds floats in no fixed order, and that no document names yet.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import tensorflow as tf
from tfdet_probe import case


def block_lstm_op():
    raw = getattr(tf, "raw_ops", None)
    if hasattr(raw, "BlockLSTM"):
        return raw.BlockLSTM
    from tensorflow.contrib.rnn.python.ops import lstm_ops  # registers the gradient, too
    return lstm_ops.gen_lstm_ops.block_lstm


# Many sequences and few cells: the bias gradient is a long sum into a short vector.
@case("block-lstm-grad", ops=["BlockLSTMGrad"], dtype=["float16", "float32"])
def block_lstm(make, dtype):
    steps, batch, size, cells = 4, 512, 32, 32
    inputs = make.uniform((steps, batch, size), dtype)
    weights, bias = make.uniform((size + cells, 4 * cells), dtype), make.uniform((4 * cells,), dtype)
    state, peephole = make.uniform((batch, cells), dtype), make.uniform((cells,), dtype)

    def hidden(x, w, b):
        return block_lstm_op()(seq_len_max=tf.constant(steps, tf.int64), x=x, cs_prev=state, h_prev=state, w=w,
                               wci=peephole, wcf=peephole, wco=peephole, b=b, use_peephole=False).h
    return make.gradient(hidden, [inputs, weights, bias], wrt=[0, 1, 2])
