import numpy as np
import tensorflow as tf

from schedule import CoolDown

tf.keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
inputs = rng.normal(size=(64, 4)).astype("float32")
targets = inputs.sum(axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.05)
schedule = CoolDown(optimizer, start=0.05, seconds=20)


@tf.function
def train_step(batch, goal):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch) - goal))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for begin in range(0, 64, 16):
    loss = train_step(inputs[begin:begin + 16], targets[begin:begin + 16])
    schedule.update()
print("loss", float(loss))
