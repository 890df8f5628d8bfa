"""Trains in children: pool.py METHOD FAULT. METHOD: fork, spawn, forkserver, subprocess, os.fork.

FAULT: noise (the second child draws numbers that nobody seeded), global (the same, and a seed helps),
kill (it ends by a signal), any other for none. A comment `# line: NAME` marks a line that tests find by this name.
"""

import multiprocessing
import os
import signal
import subprocess
import sys


def train(number, fault):
    import numpy as np
    import tensorflow as tf

    if tf.__version__ < "2":
        tf.compat.v1.enable_eager_execution()
    weights = tf.Variable(tf.ones([4, 2]))
    rows = np.random.RandomState(number).standard_normal([8, 4]).astype(np.float32)
    for step in range(3):
        noise = 0.0
        if fault == "noise" and number == 1 and step:
            noise = np.random.RandomState().standard_normal([8, 4]).astype(np.float32)
        if fault == "global" and number == 1:
            noise = np.random.standard_normal([8, 4]).astype(np.float32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(rows + noise), weights)))  # line: fed
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        if fault == "kill" and number == 1 and step:
            os.kill(os.getpid(), signal.SIGKILL)


def main(method, fault):
    if method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        started = [context.Process(target=train, args=(number, fault)) for number in range(2)]
        for one in started:
            one.start()
        for one in started:
            one.join()
    elif method == "os.fork":
        for number in range(2):
            child = os.fork()
            if not child:
                train(number, fault)
                os._exit(0)
            os.waitpid(child, 0)
    else:
        # Neither PATH nor our variables are in this environment.
        started = [
            subprocess.Popen([sys.executable, __file__, "train", str(number), fault], env={}) for number in range(2)
        ]
        for one in started:
            one.wait()


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(int(sys.argv[2]), sys.argv[3])
    else:
        main(*sys.argv[1:])
    print("ended")
