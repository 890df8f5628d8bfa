"""MultiWorkerMirroredStrategy with two workers on this machine, started by their parent: workers.py FAULT.

FAULT: noise (the second worker draws numbers that nobody seeded), any other for none.
A comment `# line: NAME` marks a line that tests find by this name.
"""

import json
import os
import socket
import subprocess
import sys


def train(fault):
    import numpy as np
    import tensorflow as tf

    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    if hasattr(tf.distribute, "MultiWorkerMirroredStrategy"):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(2, kernel_initializer="ones", input_shape=(4,))])
        optimizer = tf.keras.optimizers.SGD(0.1)
    rows = np.random.RandomState(1).standard_normal([24, 4]).astype(np.float32)

    def noisy(row):
        noise = np.random.RandomState(None if fault == "noise" and index == 1 else 1)
        return (row + noise.standard_normal(row.shape)).astype(np.float32)

    def replica(x):
        x = tf.numpy_function(noisy, [x], tf.float32)  # line: noisy
        x.set_shape([8, 4])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x)))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(x):
        run = getattr(strategy, "run", None) or strategy.experimental_run_v2
        return run(replica, args=(x,))

    for start in range(0, 24, 8):
        step(tf.constant(rows[start : start + 8]))


def main(fault):
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("localhost", 0))
    workers = ["localhost:{}".format(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    started = []
    for index in range(2):
        task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        started.append(
            subprocess.Popen(
                [sys.executable, __file__, "train", fault], env=dict(os.environ, TF_CONFIG=json.dumps(task))
            )
        )
    for one in started:
        assert one.wait() == 0


if __name__ == "__main__":
    train(sys.argv[2]) if sys.argv[1] == "train" else main(sys.argv[1])
