"""Runs inside a TensorFlow environment: what the switch does there, a fresh process a check.

python switch_checks.py EXPECTED: EXPECTED is JSON, {"environment": {...}, "teod": bool, "patch": bool}.
Prints a line a check: `ok NAME`, or `FAILED NAME` with what went wrong below it.
"""

import contextlib
import io
import json
import os
import random
import sys
import traceback
import types
import warnings

import numpy as np
import tensorflow as tf

import tfdeterminism
from tfdeterminism import checks, recipes, switch

EXPECTED = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
VARIABLES = ("TF_CUDNN_DETERMINISTIC", "TF_DETERMINISTIC_OPS", "TF_CUDNN_USE_FRONTEND", "TF_CUDNN_USE_AUTOTUNE")
TF1 = tf.__version__.startswith("1.")
V1 = getattr(tf.compat, "v1", tf)
ALL = []


def check(function):
    ALL.append(function)
    return function


def enabled(*arguments):
    """(report, classes of the warnings of ours)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report = tfdeterminism.enable_determinism(*arguments)
    ours = [w for w in caught if issubclass(w.category, tfdeterminism.DeterminismWarning)]
    assert all(w.filename == __file__ for w in ours), "a warning points into the package"
    return report, [w.category.__name__ for w in ours]


def variables():
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def attributes():
    """What every name in every module of TensorFlow and Keras is bound to now."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("tensorflow", "tensorflow_core", "keras"):
            found.update(((name, key), value) for key, value in list(getattr(module, "__dict__", {}).items()))
    return found


def changed(before, after):
    return sorted(key for key in before if key in after and callable(before[key]) and before[key] is not after[key])


def keys_of_patches():
    """The patches that this version is to get."""
    version = tuple(int(part) for part in tf.version.VERSION.split(".")[:2])
    return [patch.key for patch in recipes.patches_for("stock", version)]


def run_an_op():
    if TF1:
        with V1.Session() as session:
            session.run(tf.constant(1.0))
        return session
    return tf.constant(1.0) + 1.0


@check
def variables_are_set_and_put_back():
    os.environ["TF_CUDNN_DETERMINISTIC"] = "0"
    wanted = dict({"TF_CUDNN_DETERMINISTIC": "0"}, **EXPECTED["environment"])
    enabled()
    assert variables() == wanted, variables()
    tfdeterminism.disable()
    assert variables() == {"TF_CUDNN_DETERMINISTIC": "0"}, variables()


@check
def nothing_is_warned_of_a_fresh_start():
    report, warned = enabled(1)
    assert warned == [], warned
    assert report.warnings == []
    assert not checks.started(), "the switch itself started TensorFlow"


@check
def the_op_switch_of_tensorflow():
    if not EXPECTED["teod"]:
        return
    from tensorflow.python.framework import config
    enabled()
    assert config.is_op_determinism_enabled()
    try:
        tf.random.normal([2])
    except RuntimeError:
        pass
    else:
        raise AssertionError("a random op without a seed did not raise")
    tfdeterminism.disable()
    assert not config.is_op_determinism_enabled()


@check
def a_switch_that_was_on_stays_on():
    if not EXPECTED["teod"]:
        return
    from tensorflow.python.framework import config
    tf.config.experimental.enable_op_determinism()
    enabled()
    tfdeterminism.disable()
    assert config.is_op_determinism_enabled()


@check
def disable_restores_every_name():
    before = attributes()
    report, _ = enabled()
    replaced = changed(before, attributes())
    assert bool(replaced) == bool(report.patches), replaced
    report.disable()
    assert not changed(before, attributes()), changed(before, attributes())
    assert not report.active
    assert "switched off" in str(report)


@check
def twice_is_once():
    first, _ = enabled()
    state = attributes()
    second, warned = enabled(7)
    assert second is first
    assert not changed(state, attributes()), changed(state, attributes())
    assert warned == []
    run_an_op()
    assert enabled()[1] == [], "too late is told although it was on in time"
    tfdeterminism.disable()
    tfdeterminism.disable()
    assert variables() == {}


@check
def too_late_is_told():
    keep = run_an_op()
    report, warned = enabled()
    assert warned and set(warned) == {"TooLateWarning"}, warned
    assert any("may have run" in text for text in report.warnings), report.warnings
    del keep


@check
def a_graph_that_was_built_is_told():
    with V1.get_default_graph().as_default() if TF1 else tf.Graph().as_default():
        tf.constant(1.0)
        _, warned = enabled()
    assert warned == (["TooLateWarning"] if TF1 else []), warned


@check
def xla_is_told_where_it_defeats():
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit --tf_xla_auto_jit=2"
    expected = [] if EXPECTED["teod"] else ["XlaWarning"]
    assert enabled()[1] == expected
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_auto_jit=0"
    assert enabled()[1] == []
    if hasattr(tf, "config") and hasattr(tf.config, "optimizer"):
        tf.config.optimizer.set_jit(True)
        assert enabled()[1] == expected


@check
def autotune_is_told_and_left():
    os.environ["TF_CUDNN_USE_AUTOTUNE"] = "0"
    assert enabled()[1] == ["AutotuneWarning"]
    assert os.environ["TF_CUDNN_USE_AUTOTUNE"] == "0"


def draws():
    layer = tf.keras.layers.Dense(3)
    layer.build((None, 2))
    tensor = V1.random_normal([3])
    if TF1:
        with V1.Session() as session:
            session.run(V1.global_variables_initializer())
            numbers = session.run([tensor, layer.kernel])
    else:
        numbers = [tensor.numpy(), layer.kernel.numpy()]
    return random.random(), np.random.rand(3).tobytes(), [n.tobytes() for n in numbers]


@check
def seeds_reach_every_generator():
    report, _ = enabled(5)
    first = draws()
    if TF1:
        V1.reset_default_graph()
    enabled(np.int64(5))
    assert draws() == first
    if TF1:
        V1.reset_default_graph()
    enabled(6)
    other = draws()
    assert all(a != b for a, b in zip(first, other)), "a generator does not listen to the seed"
    assert [line for line in report.done if line.startswith("seeded")][0].endswith("with 6")


@check
def bad_seeds_are_refused_before_anything_is_done():
    for seed, error in (("1", TypeError), (1.5, TypeError), (True, TypeError), (-1, ValueError), (2 ** 32, ValueError)):
        try:
            tfdeterminism.enable_determinism(seed)
        except error:
            continue
        raise AssertionError("seed {!r} was taken".format(seed))
    assert variables() == {}


@check
def the_report_says_what_is_left():
    report, _ = enabled()
    text = str(report)
    for words in ("PYTHONHASHSEED", "one worker", "HOROVOD_FUSION_THRESHOLD", "seed", tf.__version__):
        assert words in text, words
    assert ("XLA" in " ".join(report.todo)) == (not EXPECTED["teod"])
    assert not {entry.source for entry in report.remaining if not entry.measured} & set(report.covered)
    assert "max_pool_with_argmax" in text or tf.__version__.startswith("1.13")
    text.encode("ascii")


@check
def nvidias_image_is_seen():
    os.environ["NVIDIA_TENSORFLOW_VERSION"] = "20.03"
    report, _ = enabled()
    assert report.build.kind == "ngc"
    assert variables() == ({} if EXPECTED["teod"] else {"TF_DETERMINISTIC_OPS": "1"}), variables()
    try:
        tfdeterminism.patch()
    except TypeError as error:
        assert "NVIDIA" in str(error) and "TF_DETERMINISTIC_OPS" in str(error), error
    else:
        raise AssertionError("patch() went through")


@check
def a_nightly_is_told_and_served():
    tf.__version__ += "-dev20260101"
    report, warned = enabled()
    assert warned == ["UnknownBuildWarning"], warned
    assert "no release" in report.warnings[0]
    assert variables() == EXPECTED["environment"]


@check
def an_unknown_build_keeps_the_patches_that_fit():
    tf.__version__ += "-dev20260101"
    wanted = keys_of_patches()
    if not wanted:
        return
    switch.PATCHES[wanted[0]] = switch.PATCHES[wanted[0]]._replace(install=refuse)
    report, warned = enabled()
    assert set(warned) == {"UnknownBuildWarning"}
    assert [patch.key for patch in report.patches] == wanted[1:]
    assert any(wanted[0] in text for text in report.warnings)
    assert variables() == EXPECTED["environment"]


def refuse(replacements):
    raise AttributeError("no such name here")


def gradient_ops():
    """The types of the ops that the gradient of tf.nn.bias_add is made of."""
    with tf.Graph().as_default() as graph:
        bias = V1.placeholder(tf.float32, [3])
        V1.gradients(tf.nn.bias_add(V1.placeholder(tf.float32, [2, 3]), bias), bias)
    return {node.type for node in graph.get_operations()}


@check
def patch_does_what_it_always_did():
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
def patch_and_then_all_the_rest():
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


@check
def a_reference_from_before_is_named():
    program = types.ModuleType("a_program")
    program.segments = tf.math.unsorted_segment_sum
    sys.modules["a_program"] = program
    report, _ = enabled()
    replaced = "unsorted-segment" in keys_of_patches()
    assert report.old_references == (["a_program.segments"] if replaced else []), report.old_references
    assert ("a_program.segments" in str(report)) == replaced


def in_child(function):
    """(did it pass, what it said)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        text, status = "", 0
        try:
            function()
        except BaseException:
            text, status = traceback.format_exc(), 1
        os.write(writer, text.encode("utf-8", "replace")[:60000])
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        text = said.read().decode("utf-8", "replace")
    _, status = os.waitpid(pid, 0)
    return status == 0, text


if __name__ == "__main__":
    for name in VARIABLES:
        os.environ.pop(name, None)
    assert tf.keras.layers.Dense  # loads what is loaded lazily, once for all checks
    assert not checks.started()
    for function in ALL:
        passed, said = in_child(function)
        print("{} {}\n{}".format("ok" if passed else "FAILED", function.__name__, said), end="")
