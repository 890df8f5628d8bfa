"""A model with its own train_step adds noise without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Keras fit
in: tf2.21
expect: op=RandomStandardNormal | class=seed or state
"""
import numpy as np
import tensorflow as tf


class Model(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        x = x + tf.random.normal(tf.shape(x))  # <- culprit
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x)[:, 0] - y))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return {"loss": loss}


x = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
model = Model()
model.compile("sgd")
model.fit(x, x.sum(1), batch_size=16, epochs=1, shuffle=False, verbose=0)
