import numpy as np
import tensorflow as tf

from regions import Regions

tf.random.set_seed(0)
images = tf.constant(np.random.default_rng(0).normal(size=(2, 24, 24, 8)), tf.float32)
filters = tf.Variable(tf.random.normal([3, 3, 8, 16], stddev=0.2))
regions = Regions(2000)
optimizer = tf.keras.optimizers.SGD(0.01)
for _ in range(6):
    with tf.GradientTape() as tape:
        features = tf.nn.conv2d(images, filters, 1, "SAME")
        loss = tf.reduce_mean(tf.square(regions.crop(features)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [filters]), [filters]))
print("loss", float(loss))
