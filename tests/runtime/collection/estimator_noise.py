"""A model function of an Estimator draws from NumPy.

This program tests `tfdet locate`, which must name the line marked `culprit` as the cause.
form: Estimator
in: tf2.0 tf1.14
expect: op=PyFunc | class=Python feed
"""
import tempfile

import numpy as np
import tensorflow as tf

generator = np.random.RandomState()
tf1 = tf.compat.v1


def noise(x):
    return (x + generator.standard_normal(x.shape)).astype(np.float32)


def model(features, labels, mode):
    noisy = tf1.py_func(noise, [features], tf.float32)  # <- culprit
    noisy.set_shape([16, 8])
    weights = tf1.get_variable("weights", [8, 1], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(noisy, weights)[:, 0] - labels))
    step = tf1.train.get_global_step()
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    rows = np.random.RandomState(1).standard_normal([64, 8]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((rows, rows.sum(1))).repeat().batch(16)


tf.estimator.Estimator(model, tempfile.mkdtemp()).train(data, steps=4)
