"""MirroredStrategy on two virtual CPUs with fixed data.

This program tests `tfdet locate`, which must find no difference.
form: distribution strategies
in: tf2.21
expect: same
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
rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(rows).batch(16))


def replica(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
    return loss


@tf.function
def train(x):
    return strategy.run(replica, args=(x,))


for x in data:
    train(x)
