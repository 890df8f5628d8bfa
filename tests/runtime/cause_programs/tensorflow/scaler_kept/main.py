import argparse

import numpy as np
import tensorflow as tf

from scaling import Scaler

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scaler", default="scaler.npz")
    args = parser.parse_args()
    tf.random.set_seed(0)
    rows = np.random.default_rng(2).gamma(2.0, 3.0, (40, 3))
    scaler = Scaler.restore_or_fit(args.scaler, rows)
    inputs = scaler.transform(rows).astype(np.float32)
    weights = tf.Variable(tf.random.normal([3, 1]))
    optimizer = tf.keras.optimizers.Adam(0.05)
    for _ in range(4):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(inputs @ weights - inputs[:, :1]))
        optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
    print("loss", float(loss))
