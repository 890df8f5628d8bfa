"""An LSTM on embedded words, a custom loop with a gradient tape and clipped gradients.

expect: same
"""
import random

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
random.seed(1)
np.random.seed(1)
tf.compat.v1.set_random_seed(1)
words = np.random.randint(1, 50, [4, 8, 12]).astype(np.int32)
labels = np.random.randint(0, 2, [4, 8, 1]).astype(np.float32)


class Classifier(tf.keras.Model):
    def __init__(self):
        super(Classifier, self).__init__()
        self.embed = tf.keras.layers.Embedding(50, 8)
        self.lstm = tf.keras.layers.LSTM(8)
        self.out = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.lstm(self.embed(x)))


model = Classifier()
optimizer = tf.keras.optimizers.RMSprop(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm([tf.convert_to_tensor(g) for g in gradients], 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


model(tf.constant(words[0]))  # the variables are made outside of the function
for step in range(4):
    loss = train_step(tf.constant(words[step]), tf.constant(labels[step]))
print("loss", float(loss))
