"""MirroredStrategy on two virtual CPUs; each replica gets noise from NumPy.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: distribution strategies
in: tf2.21
expect: op=PyFunc | class=Python feed
"""
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
tf.config.set_logical_device_configuration(cpu, two)
tf.random.set_seed(1)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weights = tf.Variable(tf.ones([8, 4]))
    optimizer = tf.keras.optimizers.SGD(0.1)


def noise(x):
    return (x + np.random.standard_normal(x.shape)).astype(np.float32)


def replica(x):
    noisy = tf.numpy_function(noise, [x], tf.float32)  # <- culprit
    noisy.set_shape([16, 8])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)))
    gradients = tape.gradient(loss, [weights])
    optimizer.apply_gradients(zip(gradients, [weights]))
    return loss


@tf.function
def train(x):
    return strategy.run(replica, args=(x,))


for step in range(3):
    train(tf.ones([16, 8]))
