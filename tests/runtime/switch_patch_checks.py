"""The checks of patch(), the function of 2019; part of switch_checks.py.

EXPECTED["patch"]: whether this version of TensorFlow has a patch; attributes(): the value of every name in every
module of TensorFlow, of which changed() returns those whose functions were replaced; enabled(): calls
enable_determinism().
"""

import contextlib
import io

import tensorflow as tf
from switch_base_checks import EXPECTED, V1, attributes, changed, check, enabled, variables

import tfdeterminism


def gradient_ops():
    """Return the op types in the gradient of tf.nn.bias_add."""
    with tf.Graph().as_default() as graph:
        bias = V1.placeholder(tf.float32, [3])
        V1.gradients(tf.nn.bias_add(V1.placeholder(tf.float32, [2, 3]), bias), bias)
    return {node.type for node in graph.get_operations()}


@check
def patch_replaces_the_gradient_of_bias_add():
    out = io.StringIO()
    assert "BiasAddGrad" in gradient_ops()
    try:
        with contextlib.redirect_stdout(out):
            tfdeterminism.patch()
    except TypeError as error:
        assert not EXPECTED["patch"], error
        assert "No patch available for version {}".format(tf.__version__) in str(error), error
        assert "enable_determinism" in str(error)
        assert variables() == {} and "BiasAddGrad" in gradient_ops() and out.getvalue() == ""
        return
    assert EXPECTED["patch"]
    (line,) = out.getvalue().splitlines()
    assert tf.__version__ in line and tfdeterminism.__version__ in line, line
    assert variables() == {"TF_CUDNN_DETERMINISTIC": "1"}
    assert "BiasAddGrad" not in gradient_ops()
    state = attributes()
    with contextlib.redirect_stdout(out):
        tfdeterminism.patch()
    assert not changed(state, attributes()), "patched twice"
    tfdeterminism.disable()
    assert "BiasAddGrad" in gradient_ops() and variables() == {}


@check
def patch_and_then_enable_determinism():
    if not EXPECTED["patch"]:
        return
    before = attributes()
    with contextlib.redirect_stdout(io.StringIO()):
        tfdeterminism.patch()
    report, warned = enabled()
    assert not warned
    assert "bias-add" in [patch.key for patch in report.patches]
    report.disable()
    assert not changed(before, attributes()) and variables() == {}
