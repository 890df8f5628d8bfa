"""A variable that is no weight gets a random value in step 3; it is used from step 6 on.

form: late start
expect: op=RandomUniform | class=seed or state
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
weights = tf.Variable(tf.ones([8, 4]))
shift = tf.Variable(tf.zeros([]), trainable=False)
x = tf.ones([16, 8])

for step in range(9):
    if step == 3:
        shift.assign(tf.random.uniform([]))  # <- culprit
    with tf.GradientTape() as tape:
        moved = tf.matmul(x, weights) + (shift if step >= 6 else 0.0)
        loss = tf.reduce_mean(tf.square(moved - 1.0))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
print(float(loss))
