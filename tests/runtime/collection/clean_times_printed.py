"""The time is printed and a file gets a random name; training depends on neither.

This program tests `tfdet locate`, which must find no difference.
form: custom loop
expect: same
"""
import os
import tempfile
import time
import uuid

import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 4]))
path = os.path.join(tempfile.mkdtemp(), uuid.uuid4().hex)
for step in range(4):
    began = time.time()
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([16, 8]), weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    tf.io.write_file(path, tf.strings.as_string(loss))
    print("step", step, float(loss), time.time() - began)
print(float(tf.strings.to_number(tf.io.read_file(path))))
