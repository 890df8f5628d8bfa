"""Predict the next character of a name."""
import keras
import numpy as np

from alphabet import Alphabet

NAMES = ["anna", "bernd", "carla", "dora", "emil", "fritz", "gustav", "hanna"]


def windows(alphabet, size=3):
    for name in NAMES:
        ids = alphabet.encode("." * size + name + ".")
        for at in range(len(ids) - size):
            yield ids[at:at + size], ids[at + size]


keras.utils.set_random_seed(1)
alphabet = Alphabet(NAMES)
inputs, targets = (np.array(part) for part in zip(*windows(alphabet)))
model = keras.Sequential([keras.layers.Embedding(len(alphabet), 4), keras.layers.Flatten(),
                          keras.layers.Dense(len(alphabet), activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
history = model.fit(inputs, targets, epochs=1, batch_size=16, verbose=0)
print("loss", history.history["loss"][-1])
