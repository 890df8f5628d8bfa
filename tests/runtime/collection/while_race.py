"""The gradient of crop_and_resize, whose threads race, inside a while loop.

form: while and map_fn
in: tf2.21 tf2.0
expect: op=CropAndResizeGradImage | class=kernel race
"""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
data = np.random.RandomState(1)
corners = data.uniform(size=[2048, 2, 2]).astype(np.float32)
boxes = tf.constant(np.concatenate([corners.min(1), corners.max(1)], 1))
owners = tf.constant(data.randint(0, 2, [2048]).astype(np.int32))
image = tf.Variable(data.standard_normal([2, 16, 16, 8]).astype(np.float32))


@tf.function
def train():
    with tf.GradientTape() as tape:
        def body(number, state):
            crops = tf.image.crop_and_resize(image + state, boxes, owners, [24, 24])  # <- culprit
            return number + 1, state + tf.reduce_mean(tf.square(crops))

        _, state = tf.while_loop(lambda number, state: number < 3, body, [tf.constant(0), tf.constant(0.0)])
    image.assign_sub(0.1 * tape.gradient(state, image))
    return state


for step in range(4):
    loss = train()
print(float(loss))
