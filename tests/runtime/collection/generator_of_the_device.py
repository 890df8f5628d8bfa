"""A generator whose state is not deterministic, used in a tf.function by a Keras model.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: generators
in: tf2.21
expect: op=NonDeterministicInts/* | class=seed or state
"""
import tensorflow as tf

generator = tf.random.Generator.from_non_deterministic_state()  # <- culprit
dense = tf.keras.layers.Dense(2, kernel_initializer="ones")
dense.build([None, 3])
optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)


@tf.function
def train():
    x = generator.uniform([8, 3])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(dense(x)))
    optimizer.apply_gradients(zip(tape.gradient(loss, dense.trainable_variables), dense.trainable_variables))
    return loss


for _ in range(3):
    loss = train()
print(float(loss))
