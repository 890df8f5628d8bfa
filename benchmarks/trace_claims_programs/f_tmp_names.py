r"""Checkpoints, logs, caches and records in a temporary folder: nothing differs.

in: tf2.21
says: No difference
"""

import os
import tempfile

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
folder = tempfile.mkdtemp()
path = os.path.join(folder, "data.txt")
with open(path, "w") as f:
    f.writelines(f"{n}\n" for n in range(64))
lines = (
    tf.data.TextLineDataset(path).map(lambda t: tf.strings.to_number(t)).batch(8).cache(os.path.join(folder, "cache"))
)
names = tf.data.Dataset.list_files(os.path.join(folder, "*.txt"), shuffle=False)
text = tf.io.read_file(next(iter(names)))
size = tf.cast(tf.strings.length(text), tf.float32)
model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
writer = tf.summary.create_file_writer(os.path.join(folder, "logs"))
for batch in lines:
    loss = model.train_on_batch(batch[:, None] / size, batch[:, None] / 64.0)
    with writer.as_default():
        tf.summary.write("loss", tf.constant(float(np.ravel(loss)[0])), step=1)
check = tf.train.Checkpoint(model=model)
check.restore(check.save(os.path.join(folder, "ck")))
model.train_on_batch(np.ones((2, 1)), np.ones((2, 1)))
