"""Cases of scatters into tensors and variables. Each function yields cases, made by `m`, a making_checks.Maker.

Of a case: wrt: which inputs to differentiate by; second: whether to test second derivatives, too; terms: how many
numbers a result sums at most, which bounds its error;
modes: eager, and in graphs that know the shape, the number of dimensions alone (DIMS) or nothing (ALL).
"""

import numpy as np
from making_checks import ALL, DIMS, EAGER, FLOATS


def _scatter(shape, indices, updates):
    """Return what scatter_nd computes, one update after the other."""
    out = np.zeros(shape, updates.dtype)
    depth = indices.shape[-1]
    flat = updates.reshape((-1,) + tuple(shape[depth:]))
    for index, row in zip(indices.reshape(-1, depth).astype(int), flat):
        out[tuple(index)] += row
    return out


def scatters(tf, tf1, m, version):
    shapes = (((7, 2), 1, (30,)), ((4, 5), 2, (6, 5)), ((3, 4, 2), 2, (20,)), ((5,), 1, (0,)), ((6,), 1, (1,)))
    for dtype in FLOATS + ("complex64",):
        for shape, depth, rows in shapes if dtype == "float32" else shapes[1:3]:
            indices = np.stack([m.ints(0, size, rows) for size in shape[:depth]], -1)
            updates = m.real(rows + shape[depth:], dtype)
            label = "%s %s in %s by %d" % (dtype, rows, shape, depth)
            yield m.case("scatter_nd " + label, "scatter-nd", lambda i, u, s: tf.scatter_nd(i, u, s),
                         [indices.astype("int64"), updates, np.array(shape, "int64")], wrt=[1], second=True, terms=40,
                         expected=lambda i, u, s: _scatter([int(n) for n in s], i, u),
                         modes=ALL if dtype == "float32" and shape == (4, 5) else EAGER)
            target = m.real(shape, dtype)
            for name, sign in (("add", 1), ("sub", -1)):
                function = _tensor_scatter(tf, name)
                yield m.case("tensor_scatter_nd_%s %s" % (name, label), "tensor-scatter-nd", function,
                             [target, indices, updates], wrt=[0, 2], second=True, terms=40,
                             expected=lambda t, i, u, sign=sign: t + sign * _scatter(t.shape, i, u),
                             modes=ALL if name == "add" and dtype == "float32" and shape == (4, 5) else EAGER)
            yield m.case("tensor_scatter_nd_update " + label, "tensor-scatter-nd", _tensor_scatter(tf, "update"),
                         [target, indices, updates], wrt=[0], terms=40,
                         modes=ALL if dtype == "float32" and shape == (4, 5) else EAGER)
    for dtype in ("int32", "int64", "bool"):
        indices = m.ints(0, 5, (9, 1))
        yield m.case("tensor_scatter_nd_update " + dtype, "tensor-scatter-nd", _tensor_scatter(tf, "update"),
                     [m.ints(0, 2, (5, 2)).astype(dtype), indices, m.ints(0, 2, (9, 2)).astype(dtype)])
    yield m.case("scatter_nd int32", "scatter-nd", lambda i, u, s: tf.scatter_nd(i, u, s),
                 [m.ints(0, 4, (9, 1)), m.ints(0, 9, (9,)), np.array([4], "int32")])


def _tensor_scatter(tf, name):
    def call(*args):
        of_1_13 = getattr(tf, "tensor_scatter_" + name, None)
        return getattr(tf, "tensor_scatter_nd_" + name, of_1_13)(*args)
    return call


def _into_variable(tf, tf1, scatter, resource):
    """Return a function that creates a variable, scatters into it and reads it; in a graph, in one session run."""
    def call(value, indices, updates):
        # validate_shape: a variable of a shape that the graph does not know.
        variable = tf1.Variable(value, use_resource=resource, validate_shape=value.shape.is_fully_defined())
        with tf.control_dependencies([variable.initializer] if not tf1.executing_eagerly() else []):
            done = scatter(variable, indices, updates)
        if isinstance(done, tf.Operation) or done is None:
            with tf.control_dependencies([done] if done is not None else []):
                done = variable.read_value()
        return tf.identity(done)
    return call


def scattered(value, indices, updates, name):
    """Return what scatter_<name> computes, one update after the other."""
    out, positions = value.copy(), indices.astype(int)
    operators = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
                 "update": lambda old, new: new}
    if name.startswith("nd_"):
        positions = [tuple(index_row) for index_row in positions.reshape(-1, positions.shape[-1])]
        rows = updates.reshape((len(positions),) + value.shape[indices.shape[-1]:])
    else:
        positions = list(positions.reshape(-1))
        rows = np.broadcast_to(updates, indices.shape + value.shape[1:]).reshape((len(positions),) + value.shape[1:])
    for index, row in zip(positions, rows):
        out[index] = operators[name.replace("nd_", "")](out[index], row)
    return out


def variables(tf, tf1, m, version):
    from tensorflow.python.ops import gen_resource_variable_ops

    def scatter(name, resource):
        if resource and not name.startswith("nd_"):
            raw = getattr(gen_resource_variable_ops, "resource_scatter_" + name)
            return lambda variable, *arguments: raw(variable.handle, *arguments)
        return lambda *args: getattr(tf1, "scatter_" + name)(*args)

    for resource in (True, False):
        modes = ALL if resource else ALL[1:]  # there are no reference variables without a graph
        key = "resource-scatter" if resource else "ref-scatter"
        kind = "resource" if resource else "ref"
        for name in ("add", "sub", "mul", "div", "update"):
            call = _into_variable(tf, tf1, scatter(name, resource), resource)
            unknown = modes if name in ("add", "update") else modes[:1]
            for dtype in FLOATS + ("complex64",) if resource and name != "sub" else ("float32",):
                for shape, rows in (((7, 2), (30,)), ((4, 2, 3), (5, 6)), ((5,), (90,)), ((4, 2), (0,)), ((3, 2), ())):
                    if shape != (7, 2) and (dtype != "float32" or not resource):
                        continue
                    numbers = [m.real(shape, dtype, 0.6, 1.4), m.ints(0, shape[0], rows),
                               m.real(rows + shape[1:], dtype, 0.6, 1.4)]
                    yield m.case("%s scatter_%s %s %s into %s" % (kind, name, dtype, rows, shape), key, call, numbers,
                                 terms=100, expected=lambda v, i, u, name=name: scattered(v, i, u, name),
                                 modes=unknown if (dtype, shape) == ("float32", (7, 2)) else modes[:1])
            yield m.case("%s scatter_%s of a scalar" % (kind, name), key, call,
                         [m.real((7, 2)), m.ints(0, 7, (9,), "int64"), np.float32(1.25)], terms=20,
                         modes=modes if name == "add" else modes[:1],
                         expected=lambda v, i, u, name=name: scattered(v, i, u, name))
        for name in ("nd_add", "nd_sub", "nd_update"):
            call = _into_variable(tf, tf1, scatter(name, resource), resource)
            for shape, depth, rows in (((7, 2), 1, (30,)), ((4, 5), 2, (6, 5)), ((3, 4, 2), 2, (70,)), ((5,), 1, (0,))):
                indices = np.stack([m.ints(0, size, rows) for size in shape[:depth]], -1)
                yield m.case("%s scatter_%s %s into %s by %d" % (kind, name, rows, shape, depth),
                             "scatter-nd-variable", call, [m.real(shape), indices, m.real(rows + shape[depth:])],
                             terms=80, expected=lambda v, i, u, name=name: scattered(v, i, u, name),
                             modes=modes if (name, shape) == ("nd_add", (3, 4, 2)) else modes[:1])
        for dtype in ("int32", "int64", "bool"):
            yield m.case("%s scatter_update %s" % (kind, dtype), key,
                         _into_variable(tf, tf1, scatter("update", resource), resource),
                         [m.ints(0, 2, (5, 2)).astype(dtype), m.ints(0, 5, (9,)), m.ints(0, 2, (9, 2)).astype(dtype)],
                         modes=modes[:1])
    yield m.case("Variable.scatter_add", "resource-scatter", _into_variable(
        tf, tf1, lambda v, i, u: v.scatter_add(tf.IndexedSlices(u, i)), True),
        [m.real((6, 3)), m.ints(0, 6, (40,)), m.real((40, 3))], terms=40, modes=DIMS)
    yield m.case("Variable.scatter_nd_sub", "scatter-nd-variable", _into_variable(
        tf, tf1, lambda v, i, u: v.scatter_nd_sub(i, u), True),
        [m.real((6, 3)), m.ints(0, 6, (40, 1)), m.real((40, 3))], terms=40, modes=DIMS)
    yield m.case("gradient descent on rows", "resource-scatter", _into_variable(
        tf, tf1, lambda v, i, u: tf1.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.IndexedSlices(u, i), v)]),
        True), [m.real((6, 3)), m.ints(0, 6, (40,)), m.real((40, 3))], terms=40, modes=DIMS)
