"""Random augmentation in a parallel map: which element gets which draw is a race.

expect: op=IteratorGetNext | class=input pipeline | source=tf-data-parallel-map
"""
import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 1]))
points = np.arange(4096, dtype=np.float32).reshape(512, 8) / 4096


def augment(x):
    return x + tf.random.uniform([8], seed=2)


data = tf.data.Dataset.from_tensor_slices(points)
data = data.map(augment, num_parallel_calls=8)  # <- culprit
data = data.batch(64)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in data:
    loss = train_step(batch)
print("loss", float(loss))
