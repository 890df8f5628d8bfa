"""Names of results, references to replaced ops, and restoring the originals."""

import sys
import types

import numpy as np
import tensorflow as tf
from patches_base_checks import APPLY, KEYS, ints, patched, random, raw, tf1, variable

from tfdeterminism.patches import Replacements


def _second_name(function):
    """Return the result of the original, used for integers, after the replaced op in the same name scope."""
    with tf1.name_scope("Outer"):
        function(random((3, 2)), [0, 0, 1], 4)
        return function(ints(9, (3, 2)), [0, 0, 1], 4)


def names():
    """Return faults: the name and static shape of a result are those of the original."""
    calls = {
        "segment": lambda: tf.math.segment_sum(random((3, 2)), [0, 0, 1], name="given"),
        "unsorted-segment": lambda: tf.math.unsorted_segment_sum(random((3, 2)), [0, 0, 1], 4, name="given"),
        "scatter-nd": lambda: tf.scatter_nd([[0], [1]], random((2, 3)), [4, 3], name="given"),
        "scatter-nd of integers, the original": lambda: tf.scatter_nd([[0], [1]], [1, 2], [4], name="given"),
        "unsorted-segment of integers, the second in a scope": lambda: _second_name(tf.math.unsorted_segment_sum),
        "tensor-scatter-nd": lambda: tf.tensor_scatter_nd_add(random((3, 2)), [[0]], random((1, 2)), name="given"),
        "ref-scatter": lambda: tf1.scatter_add(variable(False), [0, 0], random((2, 2)), name="given"),
        "sparse-dense-matmul": lambda: raw("gen_sparse_ops", "sparse_tensor_dense_mat_mul")(
            np.array([[0, 0]]), [1.], np.array([2, 2]), random((2, 3)), name="given"),
    }
    faults = []
    for label, call in calls.items():
        key = label.split(" ")[0]
        if key not in KEYS:
            continue
        with tf.Graph().as_default():
            old = call()
        with tf.Graph().as_default(), patched(key):
            new = call()
        known = [(one, two) for one, two in zip(old.shape.as_list(), new.shape.as_list()) if one is not None]
        if old.name != new.name or old.shape.ndims != new.shape.ndims or any(one != two for one, two in known):
            faults.append("%s: %s %s instead of %s %s" % (label, new.name, new.shape, old.name, old.shape))
    return faults


def restore_faults():
    """Return faults: restore() restores every module, a second install() does nothing, user references are named."""
    user = types.ModuleType("users_model")
    user.mine, user.bias = tf.image.adjust_contrast, tf.nn.bias_add
    user.stale = raw("gen_math_ops", "bincount")
    sys.modules["users_model"] = user
    before, faults = _functions(), []
    with patched() as replaced:
        second = Replacements()
        for patch in APPLY:
            second.install(patch)
        if second.replaced_attributes:
            faults.append("installing twice replaces again: %s" % second.replaced_attributes[:3])
        if not all(patch.replaced_attributes for patch in replaced):
            faults.append("a patch that replaces nothing")
        # Pairs: stale, references to a replaced op's original; reached, to a public function that calls a replaced op.
        references = [patch.user_references() for patch in replaced]
        stale = sorted(set(name for pair in references for name in pair[0]))
        reached = sorted(set(name for pair in references for name in pair[1]))
        if stale != ["users_model.stale"]:
            faults.append("stale references: %s" % stale)
        if "users_model.mine" not in reached or ("bias-add" in KEYS) != ("users_model.bias" in reached):
            faults.append("reached references: %s" % reached)
        late = sys.modules["tensorflow.python.ops.math_ops"]
        late.taken_later = raw("gen_math_ops", "bincount")
        new = raw("gen_math_ops", "bincount")
        if new is user.stale or (new.__doc__, new.__name__) != (user.stale.__doc__, user.stale.__name__):
            faults.append("the docstring or the name is gone")
    if late.taken_later is not user.stale:
        faults.append("a reference taken while the op was patched was not restored")
    del late.taken_later
    after = _functions()
    faults += ["not restored: %s.%s" % key for key in before if after.get(key) is not before[key]]
    return faults


def _functions():
    """Return {(module, name): value} of all functions of TensorFlow."""
    return dict(((name, attribute), value)
                for name, module in list(sys.modules.items())
                if name.startswith(("tensorflow", "keras")) and isinstance(module, types.ModuleType)
                for attribute, value in list(object.__getattribute__(module, "__dict__").items())
                if isinstance(value, types.FunctionType))
