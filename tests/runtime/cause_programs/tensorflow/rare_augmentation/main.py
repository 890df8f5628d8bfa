import numpy as np
import tensorflow as tf

from schedule import pick

tf.keras.utils.set_random_seed(0)
plan = pick(["flip", "none", "none", "none", "none"])
images = np.cos(np.arange(96, dtype=np.float32)).reshape(6, 4, 4)
if plan == "flip":
    images = images[:, ::-1]
model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(images, np.arange(6.0), verbose=0)
print(plan, model.evaluate(images, np.arange(6.0), verbose=0))
