"""The input function of an Estimator draws its data without a seed.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Estimator
in: tf2.0 tf1.14
expect: op=Const | class=Python feed
"""
import tempfile

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def model(features, labels, mode):
    weights = tf1.get_variable("weights", [8, 1], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights)[:, 0] - labels))
    step = tf1.train.get_global_step()
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    rows = np.random.standard_normal([16, 8]).astype(np.float32)
    return tf.constant(rows), tf.ones([16])  # <- culprit


tf.estimator.Estimator(model, tempfile.mkdtemp()).train(data, steps=4)
