"""A function is exported, loaded, and called with noise.

form: saved and restored
expect: op=* | class=Python feed
"""
import tempfile

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)


class Model(tf.Module):
    def __init__(self):
        super(Model, self).__init__()
        self.weights = tf.Variable(tf.ones([8, 4]))

    @tf.function(input_signature=[tf.TensorSpec([16, 8], tf.float32)])
    def __call__(self, x):
        return tf.matmul(x, self.weights)


folder = tempfile.mkdtemp()
tf.saved_model.save(Model(), folder)
model = (getattr(tf.saved_model, "load_v2", None) or tf.saved_model.load)(folder)
for step in range(3):
    noise = np.random.standard_normal([16, 8]).astype(np.float32)
    total = tf.reduce_sum(model(tf.constant(noise)))  # <- culprit
print(float(total))
