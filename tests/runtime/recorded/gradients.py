"""Forward ops whose gradients use none, or little, of their inputs and outputs, each on a line of its own.

A comment `# line: OP` marks the forward op of the gradient OP. argv: "function" (by tf.function) or "eager".
"""
import sys

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
data = np.random.RandomState(1)
pictures = tf.constant(data.standard_normal([2, 8, 8, 3]).astype(np.float32))
who = tf.constant([1, 2, 3, 1, 1])
bias = tf.Variable(tf.zeros([3]))
users = tf.Variable(tf.ones([10, 4]))


def train():
    with tf.GradientTape() as tape:
        plain = tf.nn.bias_add(pictures, tf.ones([3]))
        shown = tf.nn.bias_add(plain, bias)  # line: BiasAddGrad
        scaled = users * 1.5
        rows = tf.gather(scaled, who)  # line: UnsortedSegmentSum
        wide = tf.tile(rows, [1, 2])
        halves = tf.concat([wide, rows], 1)
        loss = tf.reduce_mean(tf.square(shown)) + tf.reduce_sum(halves)
    return tape.gradient(loss, [bias, users])


(tf.function(train) if sys.argv[1] == "function" else train)()
