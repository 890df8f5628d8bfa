"""An Estimator whose data are the same in each run.

This program tests `tfdet locate`, which must find no difference.
form: Estimator
in: tf2.0 tf1.14
expect: same
"""
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def model(features, labels, mode):
    hidden = tf1.layers.dense(features, 16, tf.nn.relu)
    loss = tf.reduce_mean(tf.square(tf1.layers.dense(hidden, 1)[:, 0] - labels))
    step = tf1.train.get_global_step()
    train = tf1.train.AdamOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((rows, rows.sum(1))).shuffle(64, seed=1).repeat().batch(16)


config = tf.estimator.RunConfig(tf_random_seed=1)
tf.estimator.Estimator(model, tempfile.mkdtemp(), config=config).train(data, steps=5)
