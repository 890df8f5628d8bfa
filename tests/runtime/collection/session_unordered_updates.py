"""Two updates of one variable in one run, and nothing says which comes first.

form: TF1 session
expect: op=AssignAdd/Assign/Mul | class=order only/unordered access
"""
import os
import time

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
weights = tf1.get_variable("weights", [16], initializer=tf1.ones_initializer(), use_resource=False)


def late(value):
    time.sleep(os.urandom(1)[0] / 1e5)
    return value


def one(value):
    made = tf1.py_func(late, [np.full([16], value, np.float32)], tf.float32)
    made.set_shape([16])
    return made


updates = [tf1.assign(weights, weights * one(0.9)), tf1.assign_add(weights, one(1.0))]  # <- culprit
with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for step in range(20):
        session.run(updates)
    print(session.run(weights)[0])
