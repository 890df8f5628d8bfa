"""A gradient through a while loop whose body draws without a seed.

form: while and map_fn
expect: op=RandomStandardNormal | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 8]))


@tf.function
def train(x):
    def body(number, state):
        state = tf.tanh(tf.matmul(state, weights))
        return number + 1, state + tf.random.normal([16, 8])  # <- culprit

    with tf.GradientTape() as tape:
        _, state = tf.while_loop(lambda number, state: number < 4, body, [tf.constant(0), x])
        loss = tf.reduce_mean(tf.square(state))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train(tf.ones([16, 8]))
print(float(loss))
