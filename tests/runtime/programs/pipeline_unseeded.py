"""A parallel map that draws without a seed: it would differ with one worker, too.

expect: op=IteratorGetNext | class=input pipeline | source=random-op-without-seed
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([4]))


def draw(number):
    return tf.random.uniform([4])


data = tf.data.Dataset.range(16)
data = data.map(draw, num_parallel_calls=4).batch(4)  # <- culprit


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x * weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for batch in data:
    train_step(batch)
