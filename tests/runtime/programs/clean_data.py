"""A seeded tf.data pipeline: shuffle, parallel map without state, augmentation in a serial map, batches.

expect: same
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
points = np.random.RandomState(1).standard_normal([96, 8, 8, 1]).astype(np.float32)
kernel = tf.Variable(np.random.RandomState(2).standard_normal([3, 3, 1, 4]).astype(np.float32))


def augment(image):
    image = tf.image.random_flip_left_right(image, seed=3)
    image = tf.image.random_brightness(image, 0.2, seed=4)
    return image + tf.random.uniform([8, 8, 1], seed=5)


data = tf.data.Dataset.from_tensor_slices(points)
data = data.shuffle(96, seed=2).map(lambda x: x * 2.0, num_parallel_calls=4)
data = data.map(augment).batch(16, drop_remainder=True).prefetch(2)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "VALID")))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for epoch in range(2):
    for batch in data:
        loss = train_step(batch)
print("loss", float(loss))
