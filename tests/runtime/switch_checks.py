"""Runs inside a TensorFlow environment: what the switch, enable_determinism(), does there; each check in a process.

python switch_checks.py EXPECTED: EXPECTED is JSON, {"environment": {...}, "teod": bool, "patch": bool}.
teod: whether this TensorFlow has a switch of its own, enable_op_determinism(); patch: whether patch() supports it.
Prints a line a check: `ok NAME`, or `FAILED NAME` with what went wrong below it.
"""

import os
import random
import sys
import types

import numpy as np
import switch_patch_checks  # noqa: F401 (its checks are run, too)
import tensorflow as tf
from switch_base_checks import (
    EXPECTED,
    TF1,
    V1,
    attributes,
    changed,
    check,
    enabled,
    keys_of_patches,
    main,
    variables,
)

import tfdeterminism
from tfdeterminism import enable, preconditions


def run_an_op():
    if TF1:
        with V1.Session() as session:
            session.run(tf.constant(1.0))
        return session
    return tf.constant(1.0) + 1.0


@check
def variables_are_set_and_restored():
    os.environ["TF_CUDNN_DETERMINISTIC"] = "0"
    expected = dict({"TF_CUDNN_DETERMINISTIC": "0"}, **EXPECTED["environment"])
    enabled()
    assert variables() == expected, variables()
    tfdeterminism.disable()
    assert variables() == {"TF_CUDNN_DETERMINISTIC": "0"}, variables()


@check
def a_fresh_process_gets_no_warning():
    report, warned = enabled(1)
    assert warned == [], warned
    assert report.warnings == []
    assert not preconditions.runtime_started(), "the switch itself started TensorFlow"


@check
def tensorflows_own_switch_is_enabled():
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
def enabling_twice_changes_nothing_more():
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
def enabling_after_an_op_ran_is_warned():
    keep = run_an_op()
    report, warned = enabled()
    assert warned and set(warned) == {"EnabledTooLateWarning"}, warned
    assert any("may have run" in text for text in report.warnings), report.warnings
    del keep


@check
def enabling_after_a_graph_was_built_is_warned():
    with V1.get_default_graph().as_default() if TF1 else tf.Graph().as_default():
        tf.constant(1.0)
        _, warned = enabled()
    assert warned == (["EnabledTooLateWarning"] if TF1 else []), warned


@check
def xla_is_warned_where_it_defeats_determinism():
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_cpu_global_jit --tf_xla_auto_jit=2"
    expected = [] if EXPECTED["teod"] else ["XlaWarning"]
    assert enabled()[1] == expected
    os.environ["TF_XLA_FLAGS"] = "--tf_xla_auto_jit=2 --tf_xla_auto_jit=0"
    assert enabled()[1] == []
    if hasattr(tf, "config") and hasattr(tf.config, "optimizer"):
        tf.config.optimizer.set_jit(True)
        assert enabled()[1] == expected


@check
def disabled_autotune_is_warned_and_kept():
    os.environ["TF_CUDNN_USE_AUTOTUNE"] = "0"
    assert enabled()[1] == ["AutotuneWarning"]
    assert os.environ["TF_CUDNN_USE_AUTOTUNE"] == "0"


def random_numbers():
    """Return numbers of every generator: Python's, NumPy's, TensorFlow's, and initial weights."""
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
    first = random_numbers()
    if TF1:
        V1.reset_default_graph()
    enabled(np.int64(5))
    assert random_numbers() == first
    if TF1:
        V1.reset_default_graph()
    enabled(6)
    other = random_numbers()
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
def the_report_lists_what_remains():
    report, _ = enabled()
    text = str(report)
    for words in ("PYTHONHASHSEED", "one worker", "HOROVOD_FUSION_THRESHOLD", "seed", tf.__version__):
        assert words in text, words
    assert ("XLA" in " ".join(report.todo)) == (not EXPECTED["teod"])
    assert not {entry.source for entry in report.remaining if not entry.measured} & set(report.patched_sources)
    assert "max_pool_with_argmax" in text or tf.__version__.startswith("1.13")
    text.encode("ascii")


@check
def nvidias_image_is_recognized():
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
def a_nightly_build_is_warned_and_served():
    tf.__version__ += "-dev20260101"
    report, warned = enabled()
    assert warned == ["UnknownBuildWarning"], warned
    assert "not a release" in report.warnings[0]
    assert variables() == EXPECTED["environment"]


@check
def an_unknown_build_gets_the_patches_that_install():
    tf.__version__ += "-dev20260101"
    patch_keys = keys_of_patches()
    if not patch_keys:
        return
    enable.PATCHES[patch_keys[0]] = enable.PATCHES[patch_keys[0]]._replace(install=refuse)
    report, warned = enabled()
    assert set(warned) == {"UnknownBuildWarning"}
    assert [patch.key for patch in report.patches] == patch_keys[1:]
    assert any(patch_keys[0] in text for text in report.warnings)
    assert variables() == EXPECTED["environment"]


def refuse(replacements):
    raise AttributeError("no such name here")


@check
def an_earlier_reference_to_a_replaced_op_is_reported():
    program = types.ModuleType("a_program")
    program.segments = tf.math.unsorted_segment_sum
    sys.modules["a_program"] = program
    report, _ = enabled()
    replaced = "unsorted-segment" in keys_of_patches()
    assert report.old_references == (["a_program.segments"] if replaced else []), report.old_references
    assert ("a_program.segments" in str(report)) == replaced


if __name__ == "__main__":
    main()
