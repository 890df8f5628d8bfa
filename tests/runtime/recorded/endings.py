"""A program for tests of the recorder of traces, which ends in the way that its argument names."""

import os
import signal
import sys

how = sys.argv[1]
if how == "nothing":
    sys.exit(0)
if how == "before":
    raise ValueError("before TensorFlow")
import tensorflow as tf

if tf.__version__ < "2":
    tf.compat.v1.enable_eager_execution()


@tf.function
def step(value):
    return tf.sin(value)


value = tf.ones([2])
for _ in range(50):
    value = step(value)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "os._exit":
    os._exit(7)
if how == "raise":
    raise ValueError("the program's own")
if how == "exit":
    sys.exit(5)
if how == "fork":
    child = os.fork()
    if child == 0:
        # sys.exit would destroy TensorFlow's thread pools; their threads are not in a fork, and 1.14 may wait forever.
        os._exit(0)
    os.waitpid(child, 0)
if how == "spawn":
    import subprocess
    subprocess.check_call([sys.executable, "-c", "print('child')"])
if how == "full":
    import resource
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))  # as a full disk: no file can grow
    for _ in range(1000):
        value = step(value)
print("ended", how)
