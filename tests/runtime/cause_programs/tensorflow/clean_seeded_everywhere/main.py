import random

import numpy as np
import tensorflow as tf

from jobs import Backup, wait_a_little

SEED = 11
random.seed(SEED)
np.random.seed(SEED)
tf.random.set_seed(SEED)
printed_only = np.random.default_rng()
backup = Backup()
wait_a_little()
inputs = np.random.normal(size=(16, 3)).astype(np.float32)
order = random.sample(range(16), 16)
weights = tf.Variable(tf.random.normal([3, 1]))
optimizer = tf.keras.optimizers.SGD(0.05)
for at in range(0, 16, 4):
    batch = tf.constant(inputs[order[at:at + 4]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.dropout(batch, 0.1) @ weights - 1))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
    backup.note(weights.numpy())
print("loss", float(loss), "kept", len(backup.copies), "seed of the other", printed_only.integers(100))
