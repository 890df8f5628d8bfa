import numpy as np
import tensorflow as tf

from pipeline import pipeline

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(pipeline(30), epochs=1, verbose=0)
print("mean of weights", np.mean([weights.mean() for weights in model.get_weights()]))
