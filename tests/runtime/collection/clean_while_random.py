"""A while loop draws random numbers with a seed; each iteration waits for the previous one.

This program tests `tfdet locate`, which must find no difference.
form: while and map_fn
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.ones([8, 8]))


@tf.function
def train(x):
    def body(number, state):
        with tf.control_dependencies([state]):
            noise = tf.random.normal([16, 8], seed=2)
        return number + 1, tf.tanh(tf.matmul(state + noise, weights))

    with tf.GradientTape() as tape:
        _, state = tf.while_loop(lambda number, state: number < 4, body, [tf.constant(0), x], parallel_iterations=1)
        loss = tf.reduce_mean(tf.square(state))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for step in range(3):
    loss = train(tf.ones([16, 8]))
print(float(loss))
