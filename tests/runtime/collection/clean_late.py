"""Another batch from step 6 on, the same in each run.

form: late start
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
batches = [tf.constant(np.full([16, 8], number / 10.0, np.float32)) for number in range(3)]
weights = tf.Variable(tf.ones([8, 4]))
for step in range(9):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(batches[step // 3], weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
