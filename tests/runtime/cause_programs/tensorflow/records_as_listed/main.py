import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

from records import parse, write_all

tf.random.set_seed(0)
folder = Path(tempfile.mkdtemp())
write_all(folder, 10)
files = [str(path) for path in folder.glob("*.tfrecord")]
data = tf.data.TFRecordDataset(files).map(parse).batch(2)
weights = tf.Variable(tf.ones([3, 1]))
optimizer = tf.keras.optimizers.SGD(0.1)
for batch in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(batch @ weights - 0.5))
    optimizer.apply_gradients(zip(tape.gradient(loss, [weights]), [weights]))
print(len(files), "files, loss", float(loss))
shutil.rmtree(folder)
