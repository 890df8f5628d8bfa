import tensorflow as tf

from pipeline import rows

tf.random.set_seed(0)
weights = tf.Variable(tf.zeros([3, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
for batch in rows(24).shuffle(24, seed=3).batch(4).prefetch(2):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - tf.reduce_sum(batch, axis=1, keepdims=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
print("loss", float(loss))
