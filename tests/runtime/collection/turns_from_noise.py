"""A loop turns until a value is small; the value begins with noise that nobody seeded.

form: while and map_fn
expect: op=RandomUniform | class=seed or state | source=random-op-without-seed
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
x = tf.ones([16, 8])

for step in range(6):
    far = tf.random.uniform([], 1.0, 64.0)  # <- culprit
    with tf.GradientTape() as tape:
        hidden = tf.matmul(x, weights)
        while float(far) > 1.0:
            far = far / 2.0
            hidden = tf.tanh(hidden)
        loss = tf.reduce_mean(tf.square(hidden - 0.1))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
