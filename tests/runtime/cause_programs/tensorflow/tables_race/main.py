import numpy as np
import tensorflow as tf

from table import Table

tf.keras.utils.set_random_seed(0)
table = Table(words=8, width=64)
ids = tf.constant(np.random.default_rng(0).integers(0, 8, 40000))
optimizer = tf.keras.optimizers.SGD(0.1)
for step in range(4):
    with tf.GradientTape() as tape:
        loss = table.loss(ids, step)
    optimizer.apply_gradients(zip(tape.gradient(loss, [table.weights]), [table.weights]))
print("loss", float(loss))
