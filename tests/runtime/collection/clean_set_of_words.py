"""A set is asked and never gone through.

form: several feeds
fresh: PYTHONHASHSEED
expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
KNOWN = {"quick", "fox", "dog"}
WORDS = "the quick brown fox jumps over the lazy dog".split()
weights = tf.Variable(tf.ones([9, 4]))
x = np.array([[float(word in KNOWN) for word in WORDS]], np.float32)
for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
