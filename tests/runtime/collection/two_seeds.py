"""Two random ops without seeds, on two lines.

form: two culprits
expect: op=RandomStandardNormal | class=seed or state
expect: op=RandomUniform | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))


@tf.function
def train(x):
    x = x + tf.random.normal([16, 8])  # <- culprit
    x = x * tf.random.uniform([16, 8])  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(4):
    loss = train(tf.ones([16, 8]))
print(float(loss))
