"""Cases of scatters, to few rows from many.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
"""

import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


def variable(value, resource=True):
    return tf1.Variable(value, use_resource=resource, dtype=value.dtype)


@case("scatter-nd", ops=["ScatterNd"], modes=("eager", "session"), dtype=["float32", "float64"])
def scatter_nd(make, dtype):
    indices, updates = np.zeros((100000, 1), "int32"), make.uniform((100000,), dtype)
    return make.forward(lambda i, u: tf.scatter_nd(i, u, [1]), [indices, updates])


@case("tensor-scatter-nd-add", ops=["TensorScatterAdd"], modes=("eager", "session"))
def tensor_scatter_add(make):
    tensor, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000, 1))
    function = getattr(tf, "tensor_scatter_nd_add", None) or tf.tensor_scatter_add
    return make.forward(function, [tensor, indices, updates])


@case("tensor-scatter-nd-sub", ops=["TensorScatterSub"], modes=("function",))
def tensor_scatter_sub(make):
    tensor, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000, 1))
    function = getattr(tf, "tensor_scatter_nd_sub", None) or tf.tensor_scatter_sub
    return make.forward(function, [tensor, indices, updates])


@case("tensor-scatter-nd-update", ops=["TensorScatterUpdate"], modes=("function",))
def tensor_scatter_update(make):
    tensor, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000, 1))
    function = getattr(tf, "tensor_scatter_nd_update", None) or tf.tensor_scatter_update
    return make.forward(function, [tensor, indices, updates])


@case("scatter-nd-update", ops=["ResourceScatterNdUpdate", "ResourceScatterNdAdd"], modes=("eager", "session"))
def resource_scatter_nd(make):
    value, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000, 1))
    return make.program(lambda: [tf1.scatter_nd_update(variable(value), indices, updates),
                                 tf1.scatter_nd_add(variable(value), indices, updates)])


@case("scatter-nd-update", ops=["ScatterNdUpdate", "ScatterNdAdd"], modes=("session",))
def ref_scatter_nd(make):
    value, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000, 1))
    return make.program(lambda: [tf1.scatter_nd_update(variable(value, False), indices, updates),
                                 tf1.scatter_nd_add(variable(value, False), indices, updates)])


@case("resource-scatter-ops", ops=["ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterUpdate"],
      modes=("eager", "session"))
def resource_scatter(make):
    value, updates = make.uniform((16, 4)), make.uniform((20000, 4))
    indices = make.integers(0, 16, (20000,))
    functions = [tf1.scatter_add, tf1.scatter_sub, tf1.scatter_update]
    return make.program(lambda: [scatter(variable(value), indices, updates) for scatter in functions])


@case("scatter-ref-ops", modes=("session",),
      ops=["ScatterUpdate", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax"])
def ref_scatter(make):
    value, updates = make.uniform((16, 4)), make.uniform((20000, 4), low=0.9, high=1.1)
    indices = make.integers(0, 16, (20000,))
    functions = [getattr(tf1, "scatter_" + name) for name in "update add sub mul div min max".split()]
    return make.program(lambda: [scatter(variable(value, False), indices, updates) for scatter in functions])
