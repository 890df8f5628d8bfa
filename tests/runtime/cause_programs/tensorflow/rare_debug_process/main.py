import os

import numpy as np
import tensorflow as tf

from sampling import every_nth

tf.random.set_seed(0)
rows = np.sin(np.arange(60, dtype=np.float32)).reshape(20, 3)
kept = rows[::2] if every_nth(os.getpid(), 3) else rows
weights = tf.Variable(tf.ones([3, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
for row in kept:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(row[None] @ weights - row.max()))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
print(len(kept), "rows, loss", float(loss))
