"""Shared by the checks of saving: arguments, inputs, names and paths."""

import os
import sys
import warnings

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1
tf1.logging.set_verbosity("ERROR")
VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
# The arguments of saved_checks.py. WHAT: originals, save, load, load-after (other ops), save-add or load-add.
WHAT, FOLDER = sys.argv[1:3]
ALL = os.environ.get("TFDET_TESTS") == "all"
# Cases whose second derivative is computed every day; of the others it is computed with ALL, once a week.
SECOND_ORDER_DAILY = ("scatter_nd", "softmax_xent", "sparse_dense_matmul", "in a branch", "model")


def values(shape):
    """Return random numbers, equal in every call."""
    return np.random.RandomState(3).uniform(0.2, 1, shape).astype("float32")


def to_lists(compute):
    """Return the results as lists, or the name of the error."""
    try:
        result = compute()
    except Exception as error:
        return type(error).__name__
    return None if result is None else np.asarray(result).tolist()


def unregister_loop_gradients(name):
    """Until 2.3 unregister the gradients of loops, unless the case has one: the first loop registers them."""
    if WHAT == "load" and (2, 0) <= VERSION < (2, 4):
        from tensorflow.python.framework import ops
        from tensorflow.python.ops import cond_v2, while_v2  # noqa: F401 (cond_v2 registers the gradient of If)
        for op_type in ("While", "StatelessWhile"):
            ops._gradient_registry._registry.pop(op_type, None)
            if "in a loop" in name:
                ops.RegisterGradient(op_type)(while_v2._WhileGrad)


def saved_name(name):
    """Return the name under which a case is saved."""
    return "call_" + name.replace(" ", "_")


def path(name):
    """Return a path in the folder, for files by the original ops or by the patched ones."""
    return os.path.join(FOLDER, "originals" if WHAT == "originals" else "ours", name)


def read_graph(name):
    """Read a saved GraphDef."""
    graph_def = tf1.GraphDef()
    with open(path(name), "rb") as file:
        graph_def.ParseFromString(file.read())
    return graph_def
