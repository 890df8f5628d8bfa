"""Runs inside a TensorFlow environment: train a small network twice, each time in a fresh process, and compare.

Prints where tfdeterminism came from, and the digest of the trained weights of each process.
"""

import hashlib
import os
import sys
import warnings

import numpy as np
import tensorflow as tf

import tfdeterminism


def train():
    """Train a network of convolution, up-sampling, embedding and dense layers for two epochs; return its weights."""
    layers = tf.keras.layers
    rng = np.random.RandomState(0)
    images, words = rng.rand(16, 8, 8, 2).astype("float32"), rng.randint(0, 5, (16, 6))
    targets = rng.rand(16, 3).astype("float32")
    picture, text = layers.Input((8, 8, 2)), layers.Input((6,))
    image_branch = layers.UpSampling2D(2)(layers.Conv2D(4, 3, activation="relu")(picture))
    text_branch = layers.Embedding(5, 4)(text)
    joined = layers.Concatenate()([layers.Flatten()(image_branch), layers.Flatten()(text_branch)])
    model = tf.keras.Model([picture, text], layers.Dense(3)(layers.Dropout(0.5)(joined)))
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit([images, words], targets, epochs=2, batch_size=8, verbose=0)
    return model.get_weights()


def in_child():
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            tfdeterminism.enable_determinism(seed=3)
            digest = hashlib.sha256(b"".join(weight.tobytes() for weight in train())).hexdigest()
            os.write(writer, digest.encode("ascii"))
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        digest = pipe.read().decode("ascii")
    os.waitpid(pid, 0)
    return digest


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", tfdeterminism.DeterminismWarning)
    print(os.path.dirname(tfdeterminism.__file__))
    for _ in range(2):
        print(in_child())
    sys.stdout.flush()
