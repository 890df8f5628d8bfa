"""Cases of what Python or the order of a graph's assignments decides.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
make.option: a setting that a solution may change.  Mode host: plain Python.
"""

import subprocess
import sys
import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


@case("python-set-order", modes=("host",))
def set_order(make):
    """Strings hash differently in each process, and a set keeps no order."""
    program = "print(list({'layer_%d' % n for n in range(64)}))"
    return make.host(lambda: [np.array(subprocess.check_output([sys.executable, "-S", "-c", program]))])


def filled(value):
    """Fed, or the optimiser would fold it."""
    return tf.fill([262144], tf1.placeholder_with_default(value, []))


@case("tf1-unordered-assign", ops=["AssignAdd"], modes=("session",))
def unordered_assign_add(make):
    sequential, values = make.option("sequential", 0), make.uniform((32,), low=-1e3, high=1e3)

    def program():
        total, added = tf1.Variable(tf.zeros([262144]), use_resource=False), []
        for value in values:
            with tf.control_dependencies(added[-1:] if sequential else []):
                added.append(tf1.assign_add(total, filled(value)))
        with tf.control_dependencies(added):
            return tf.identity(total)
    return make.program(program)


@case("tf1-unordered-assign", ops=["Assign"], modes=("session",))
def unordered_assign(make):
    sequential, values = make.option("sequential", 0), make.uniform((32,))

    def program():
        last, assigned = tf1.Variable(tf.zeros([262144]), use_resource=False), []
        for value in values:
            with tf.control_dependencies(assigned[-1:] if sequential else []):
                assigned.append(tf1.assign(last, filled(value)))
        with tf.control_dependencies(assigned):
            return tf.identity(last)
    return make.program(program)
