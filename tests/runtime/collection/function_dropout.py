"""Dropout without a seed, two functions deep.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: function
expect: op=RandomUniform | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 64]))


@tf.function
def forward(x):
    hidden = tf.nn.relu(tf.matmul(x, weights))
    return tf.nn.dropout(hidden, rate=0.5)  # <- culprit


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(forward(x) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(tf.ones([16, 8]))
print(float(loss))
