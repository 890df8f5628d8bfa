"""A seeded generator of NumPy's is drawn from by a parallel map: who draws first is chance.

The line marked `or` is right as well.

form: tf.data
in: tf2.21
expect: op=IteratorGetNext | class=input pipeline | source=tf-data-parallel-map
"""
import threading
import time

import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
lock, generator = threading.Lock(), np.random.RandomState(7)


def jitter(row):
    time.sleep(0.001)
    with lock:
        return row + generator.standard_normal(row.shape).astype(np.float32)


def prepared(row):
    return tf.ensure_shape(tf.numpy_function(jitter, [row], tf.float32), [4])


rows = np.random.RandomState(2).standard_normal([64, 4]).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices(rows).map(prepared, num_parallel_calls=8).batch(8)  # <- or
model = tf.keras.Sequential([tf.keras.layers.Dense(3, kernel_initializer="ones", activation="tanh"),
                             tf.keras.layers.Dense(1, kernel_initializer="ones")])
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - 1.0))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


for epoch in range(2):
    for batch in data:  # <- culprit
        loss = train(batch)
print(float(loss))
