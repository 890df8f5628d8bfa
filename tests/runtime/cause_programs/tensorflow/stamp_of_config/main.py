import json
from pathlib import Path

import numpy as np
import tensorflow as tf

import config

settings = config.write_defaults(Path("settings.json"))
stamp = config.stamp(Path("settings.json"))
print("settings of", stamp)
tf.keras.utils.set_random_seed(stamp)
inputs = np.eye(settings["width"], dtype=np.float32)
model = tf.keras.Sequential([tf.keras.layers.Dense(settings["width"], use_bias=False)])
model.compile("sgd", "mse")
model.fit(inputs, inputs[::-1], verbose=0)
print(json.dumps({"loss": model.evaluate(inputs, inputs[::-1], verbose=0)}))
