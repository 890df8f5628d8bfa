"""list_files shuffles its files without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: tf.data
in: tf2.21 tf2.0
expect: op=IteratorGetNext | class=input pipeline
"""
import os
import tempfile

import tensorflow as tf

folder = tempfile.mkdtemp()
for number in range(10):
    with open(os.path.join(folder, "{}.txt".format(number)), "w") as target:
        target.write("\n".join(str(number + line / 7) for line in range(6)))
os.chdir(folder)
data = tf.data.Dataset.list_files("*.txt")
data = data.interleave(tf.data.TextLineDataset, cycle_length=2).map(tf.strings.to_number).batch(6)
weight = tf.Variable(0.5)
for x in data:  # <- culprit
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.sin(x * weight) - 0.2))
    weight.assign_sub(0.01 * tape.gradient(loss, weight))
print(float(weight.numpy()))
