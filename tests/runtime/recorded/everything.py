"""One process, many programs: each function is recorded into a folder of its own. argv: the folder.

A comment `# line: NAME` marks a line that tests find by this name.
"""

import os
import sys

import numpy as np
import tensorflow as tf

from tfdeterminism import trace

V1 = tf.__version__ < "2"
if V1:
    tf.compat.v1.enable_eager_execution()
OUT = sys.argv[1]
X = (np.arange(8, dtype=np.float32).reshape(2, 4) - 3) / 10


def recorded(program):
    with trace.record(os.path.join(OUT, program.__name__)):
        program()


def control_flow():
    w = tf.Variable(tf.ones([4, 3]), name="w")

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            y = tf.nn.relu(tf.matmul(x, w))  # line: matmul
            _, s = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + tf.reduce_sum(tf.sin(y))),  # line: while
                                 [tf.constant(0), tf.constant(0.0)])
            m = tf.map_fn(tf.exp, y)  # line: map_fn
            c = tf.cond(s > 100.0, lambda: tf.sqrt(s), lambda: tf.tanh(s))  # line: cond
            loss = c + tf.reduce_sum(m)
        w.assign_sub(0.1 * tape.gradient(loss, w))  # line: gradient
        return loss

    for _ in range(3):
        train(tf.constant(X))
        trace.step()


def retrace():
    @tf.function
    def double(x):
        return x * 2.0

    for size in (2, 3, 2):
        double(tf.ones([size]))


def dtypes():
    @tf.function
    def same(values):
        return [tf.stack([value, value]) for value in values]

    kinds = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool", "complex64"]
    values = [tf.cast(tf.constant([0, 1]), kind) for kind in kinds]
    values += [tf.constant(["a", "bc"]), tf.zeros([0, 3]), tf.constant(2.5), tf.constant([np.nan, -0.0])]
    same(values)
    for value in values:
        tf.stack([value, value])


def eager_gradient():
    w = tf.Variable([1.0, 2.0], name="eager_w")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(w))  # line: eager sin
    w.assign_sub(tape.gradient(loss, w))


def feeds():
    tf.add(tf.constant(np.ones(3, np.float32)), 1.0)
    tf.numpy_function(lambda x: x + 1, [tf.ones([2])], tf.float32)
    for value in tf.data.Dataset.from_tensor_slices(X).map(lambda x: x * 2).batch(2):
        tf.negative(value)


def nested_calls():
    @tf.function
    def inner(x):
        return tf.sin(x)

    @tf.function
    def outer(x):
        return inner(x) + inner(x + 1.0)

    for _ in range(5):
        outer(tf.ones([2]))


if V1:  # this release cannot call Python in a function that it is still building, and has no numpy_function
    tf.numpy_function = getattr(tf, "numpy_function", tf.compat.v1.py_func)
for program in (control_flow, retrace, dtypes, eager_gradient, feeds, nested_calls):
    recorded(program)
