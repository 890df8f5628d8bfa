import tensorflow as tf

from pipeline import make_dataset

tf.random.set_seed(0)
weights = tf.Variable(tf.zeros([3, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
batches = list(make_dataset(160))
for batch in batches:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - tf.reduce_sum(batch, axis=1, keepdims=True)))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
print("loss", float(loss))
