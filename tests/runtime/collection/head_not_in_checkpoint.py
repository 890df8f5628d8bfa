"""A checkpoint holds the body of a model; its new head begins as chance has it.

This program tests `tfdet locate`, which must name the line marked `culprit`, or one marked `or`, as the cause.
form: saved and restored
in: tf2.21 tf2.0
expect: op=* | class=seed or state/Python feed
"""
import os
import tempfile

import numpy as np
import tensorflow as tf

body = tf.keras.layers.Dense(4, kernel_initializer="ones", activation="relu")
body.build([None, 6])
prefix = os.path.join(tempfile.mkdtemp(), "body")
path = tf.train.Checkpoint(body=body).save(prefix)

body = tf.keras.layers.Dense(4, activation="relu")  # <- or
body.build([None, 6])  # <- or
head = tf.keras.layers.Dense(2)  # <- or
head.build([None, 4])  # <- culprit
tf.train.Checkpoint(body=body, head=head).restore(path)
x = np.random.RandomState(1).standard_normal([16, 6]).astype(np.float32)


@tf.function
def train(x):
    variables = body.trainable_variables + head.trainable_variables
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(head(body(x)) - 1.0))
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.1 * gradient)
    return loss


for _ in range(3):
    loss = train(x)
print(float(loss))
