"""Seeded, op by op, with an optimizer of Keras.

form: eager
expect: same
"""
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
tf.compat.v1.set_random_seed(1)
weights = tf.Variable(tf.random.normal([8, 4], seed=1))
optimizer = tf.keras.optimizers.Adam(0.01)
for step in range(5):
    with tf.GradientTape() as tape:
        x = tf.random.normal([16, 8], seed=2)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
print(float(loss))
