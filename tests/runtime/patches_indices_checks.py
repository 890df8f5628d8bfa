"""Indices out of range: an error on a CPU, NaN on a GPU."""

import re
import sys

import numpy as np
import tensorflow as tf
from patches_base_checks import KEYS, VERSION, patched, random, tf1, variable


def refused():
    """Scatter into variables with one index out of range: the error names it, and no element is added twice."""
    rows = np.ones((3, 2), "float32")
    calls = {
        "scatter_add": ([0, 0, 9], rows), "scatter_sub": ([9, 2, 2], rows), "scatter_update": ([1, 1, -3], rows),
        "scatter_nd_add": ([[2], [0], [9]], rows), "scatter_nd_sub": ([[2, 0], [0, 1], [1, 7]], rows[:, 0])}
    faults = []
    for name, arguments in calls.items():
        for resource in (True, False):
            key = "scatter-nd-variable" if "_nd_" in name else "resource-scatter" if resource else "ref-scatter"
            for eager in (True, False) if resource else (False,):
                if key not in KEYS or (eager and VERSION < (2, 0)):
                    continue
                expected, untouched = _refused(name, arguments, resource, eager), np.ones(6).tolist()
                with patched(key):
                    words, value_after = _refused(name, arguments, resource, eager)
                if words != expected[0] or value_after not in (expected[1], untouched):
                    faults.append("%s, %s: %s leaves %s instead of %s" % (
                        name, "eager" if eager else "graph", words, value_after, expected))
    return faults


def _refused(name, arguments, resource, eager):
    """Return the index that the error message names, and the variable's value afterwards."""
    try:
        if eager:
            target = variable()
            getattr(tf1, name)(target, *arguments)
        with tf.Graph().as_default(), tf1.Session() as session:
            target = variable(resource)
            scattered = getattr(tf1, name)(target, *arguments)
            session.run(target.initializer)
            try:
                session.run(scattered)
            except tf.errors.InvalidArgumentError:
                target = session.run(target)
                raise
    except tf.errors.InvalidArgumentError as error:
        value = target.numpy() if hasattr(target, "numpy") else target
        return re.search(r"indices\[\d+\] = \[?-?\d+(, -?\d+)*", str(error)).group(), value.reshape(-1).tolist()


class gathers_of_a_gpu(object):
    """Gathers give zeros where an index is out of range, and raise nothing."""

    def __enter__(self):
        self._array_ops = sys.modules["tensorflow.python.ops.array_ops"]
        self._before = self._array_ops.gather, self._array_ops.gather_nd
        self._array_ops.gather = lambda params, indices, **_: self._rows(
            self._before[0], params, np.asarray(indices), lambda tuples: tuples[:, np.newaxis])
        self._array_ops.gather_nd = lambda params, indices, **_: self._rows(
            self._before[1], params, np.asarray(indices), lambda tuples: tuples)

    def _rows(self, gather, params, indices, as_tuples):
        tuples = as_tuples(indices)
        inside = np.logical_and(tuples >= 0, tuples < params.shape.as_list()[:tuples.shape[1]]).all(1)
        rows = gather(params, np.where(inside[:, np.newaxis], tuples, 0).reshape(indices.shape)).numpy()
        rows[~inside] = 0
        return tf.constant(rows)

    def __exit__(self, *error):
        self._array_ops.gather, self._array_ops.gather_nd = self._before


def not_a_number():
    """A GPU cannot raise: an index that the original GPU kernels would reject makes the results NaN."""
    calls = {
        "sparse-dense-matmul": lambda: tf.sparse.sparse_dense_matmul(
            tf.SparseTensor([[0, 1], [1, 9], [2, 0]], [1., 1., 1.], [3, 2]), random((2, 2))),
        "sparse-softmax-xent": lambda: tf1.nn.sparse_softmax_cross_entropy_with_logits(
            labels=[0, 7, 1], logits=random((3, 2)))}
    faults = []
    for key in KEYS.intersection(calls):
        with patched(key), gathers_of_a_gpu():
            values = calls[key]().numpy().reshape(3, -1)
        if np.isnan(values).any(1).tolist() != [False, True, False]:
            faults.append("%s: %s" % (key, values.tolist()))
    return faults
