"""A small U-Net that resizes up, with a skip connection; a functional Keras model in a custom loop.

expect: same
"""
import random

import numpy as np
import tensorflow as tf

tf.compat.v1.enable_eager_execution()
random.seed(1)
np.random.seed(1)
tf.compat.v1.set_random_seed(1)
images = np.random.standard_normal([3, 4, 16, 16, 3]).astype(np.float32)
masks = (np.random.standard_normal([3, 4, 16, 16, 1]) > 0).astype(np.float32)

layers = tf.keras.layers
entry = layers.Input([16, 16, 3])
full = layers.Conv2D(8, 3, padding="same", activation="relu")(entry)
half = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(full)
half = layers.BatchNormalization()(half)
back = layers.UpSampling2D(2, interpolation="bilinear")(half)
joined = layers.Concatenate()([full, back])
model = tf.keras.Model(entry, layers.Conv2D(1, 1)(layers.Conv2DTranspose(8, 3, padding="same")(joined)))
optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9, nesterov=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        small = tf.image.resize(tf.sigmoid(logits), [8, 8])
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
        loss += tf.reduce_mean(tf.square(small))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for step in range(3):
    loss = train_step(tf.constant(images[step]), tf.constant(masks[step]))
print("loss", float(loss))
