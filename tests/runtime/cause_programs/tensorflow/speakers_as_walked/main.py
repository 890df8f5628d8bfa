import os
import tempfile

import numpy as np
import tensorflow as tf

from speakers import find_speakers

tf.keras.utils.set_random_seed(0)


def record(folder, speaker):
    """A session: its folder carries the process id."""
    place = os.path.join(folder, f"{speaker}.{os.getpid()}")
    os.makedirs(place)
    np.save(os.path.join(place, "voice.npy"), np.full(4, len(speaker) + ord(speaker[0]), np.float32) / 100)


with tempfile.TemporaryDirectory() as folder:
    for name in ["ada", "bob", "cleo", "dan", "eve", "finn"]:
        record(folder, name)
    speakers = find_speakers(folder)
    voices = np.stack([np.load(path) for path in speakers])
model = tf.keras.Sequential([tf.keras.layers.Dense(len(speakers), activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(voices, np.arange(len(speakers)), verbose=0)
print("loss", model.evaluate(voices, np.arange(len(speakers)), verbose=0))
