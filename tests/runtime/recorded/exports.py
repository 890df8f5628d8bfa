"""Writes what others may run: a SavedModel of functions that ran, a checkpoint's meta graph and a frozen graph.

usage: exports.py write|read FOLDER; both print the same values.
"""
import os
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) / 12


class Model(tf.Module):
    def __init__(self):
        super(Model, self).__init__()
        self.weights = tf.Variable(tf.ones([4, 2]))

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def predict(self, x):
        y = tf.matmul(x, self.weights)
        for _ in tf.range(3):
            y = y + self.inner(x)
        return tf.cond(tf.reduce_sum(y) > 0, lambda: tf.tanh(y), lambda: y)

    @tf.function
    def inner(self, x):
        return 0.1 * tf.matmul(x, self.weights)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
    def train(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.predict(x) ** 2)
        self.weights.assign_sub(tape.gradient(loss, self.weights))
        return loss


def write_functions(folder):
    model = Model()
    model.train(ROWS)
    tf.saved_model.save(model, folder)
    say(model)
    loaded = tf.saved_model.load(folder)  # in the same process too
    loaded.train(ROWS)


def say(model):
    print("predicted", model.predict(ROWS).numpy().tolist())
    print("loss", model.train(ROWS).numpy(), model.weights.numpy().tolist())


def write_session(folder):
    os.makedirs(folder)
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3, 4], name="x")
        weights = tf1.get_variable("w", initializer=np.eye(4, dtype=np.float32))
        looped = tf1.while_loop(lambda n, a: n < 3, lambda n, a: (n + 1, tf.tanh(tf.matmul(a, weights))), [0, x])[1]
        y = tf1.cond(tf.reduce_sum(looped) > 0, lambda: looped * 2.0, lambda: looped)
        y = tf.identity(y, name="y")
        train = tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y ** 2), name="train")
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(train, {x: ROWS})
            tf1.train.Saver().save(session, os.path.join(folder, "model"))
            frozen = tf1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
            tf1.train.write_graph(frozen, folder, "frozen.pb", as_text=False)
            tf1.saved_model.simple_save(session, os.path.join(folder, "served"), {"x": x}, {"y": y})
            print("y", session.run(y, {x: ROWS}).tolist())


def read_session(folder):
    values = []
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.import_meta_graph(os.path.join(folder, "model.meta")).restore(session, os.path.join(folder, "model"))
        values.append(session.run("y:0", {"x:0": ROWS}).tolist())
        session.run("train", {"x:0": ROWS})
    with tf.Graph().as_default(), tf1.Session() as session:
        graph = tf1.GraphDef()
        with open(os.path.join(folder, "frozen.pb"), "rb") as frozen:
            graph.ParseFromString(frozen.read())
        values.append(session.run(tf.import_graph_def(graph, {"x": ROWS}, ["y:0"]))[0].tolist())
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.saved_model.load(session, ["serve"], os.path.join(folder, "served"))
        values.append(session.run("y:0", {"x:0": ROWS}).tolist())
    assert values[0] == values[1] == values[2], values
    print("y", values[0])


what, out = sys.argv[1:]
if tf.__version__.startswith("2.0"):
    tf1.disable_control_flow_v2()  # 2.0 cannot freeze its new loops
if tf.__version__ >= "2":
    if what == "write":
        write_functions(os.path.join(out, "functions"))
    else:
        say(tf.saved_model.load(os.path.join(out, "functions")))
(write_session if what == "write" else read_session)(os.path.join(out, "session"))
