"""Planted faults in real TensorFlows: placement, refusals, and missing features."""

from collections import namedtuple

import pytest

pytestmark = pytest.mark.tensorflow
FAST = ("--repeats", 3, "--processes", 1, "--timeout", 60)
SOURCES = [
    "clean",
    "other-device",
    "no-such-device",
    "folded-away",
    "other-op",
    "unseeded",
    "missing",
    "no-kernel",
    "bug-shapes",
    "bug-attribute",
    "bug-value",
    "bug-own-gradient",
    "no-gradient-kernel",
    "strings",
    "clean-after-all",
]
CELLS = [*SOURCES, ("clean", "TEOD", "deterministic"), ("unseeded", "TEOD", None)]
EnvironmentRun = namedtuple("EnvironmentRun", "environment run")


@pytest.fixture(scope="module", params=["tf2.21", "tf1.14"])
def environment_run(request, planted, tf_python):
    run = planted("tensors", *FAST, python=tf_python(request.param), cells=CELLS, TF_ENABLE_ONEDNN_OPTS="0")
    return EnvironmentRun(request.param, run)


def observed(environment_run, source, solution="none"):
    """Return {mode: (observation, message)} of the source."""
    return {
        r["mode"]: (r["observation"], (r["error"] or {}).get("message", ""))
        for r in environment_run.run.records
        if (r["source"], r["solution"]) == (source, solution)
    }


def test_a_clean_op_stays_clean(environment_run):
    for source in "clean", "clean-after-all":
        assert observed(environment_run, source) == dict.fromkeys(["eager", "function", "session"], ("equal", ""))
    records = [r for r in environment_run.run.records if r["source"] == "clean" and r["solution"] == "none"]
    assert [r["ran_on"] for r in records] == [["CPU:0"]] * 3
    assert [(r["runs"], r["differed"]) for r in records] == [(3, 0)] * 3
    assert environment_run.run.code == 3  # because of the planted crashes


def test_an_op_on_another_device_is_no_evidence(environment_run):
    if environment_run.environment != "tf2.21":
        pytest.skip("no logical devices there")
    for observation, message in observed(environment_run, "other-device").values():
        assert (observation, message) == ("unsupported", "asked for CPU:0, ran MatMul on CPU:1")


def test_a_missing_device_is_not_replaced(environment_run):
    for mode, (observation, message) in observed(environment_run, "no-such-device").items():
        assert observation in ("unsupported", "crashed"), (mode, message)


def test_an_op_that_never_runs_is_no_evidence(environment_run):
    for mode, (observation, message) in observed(environment_run, "folded-away").items():
        assert (observation, message) == ("unsupported", "not seen to run: MatMul (folded away or replaced?)"), mode
    for mode, (observation, message) in observed(environment_run, "other-op").items():
        assert (observation, message) == ("unsupported", "not seen to run: Conv2D (folded away or replaced?)"), mode


def test_an_op_without_a_seed_differs(environment_run):
    assert {o for o, _ in observed(environment_run, "unseeded").values()} == {"differs"}


def test_a_refusal_for_determinism_raises(environment_run):
    for mode, (observation, message) in observed(environment_run, "unseeded", "TEOD").items():
        if environment_run.environment == "tf2.21":
            assert observation == "raises", mode
            assert "determinism" in message
        else:
            assert (observation, message) == (
                "unsupported",
                "tf.config.experimental.enable_op_determinism came with TensorFlow 2.8",
            )


@pytest.mark.parametrize("source", ["missing", "no-kernel"])
def test_missing_functions_and_kernels_are_unsupported(environment_run, source):
    for mode, (observation, message) in observed(environment_run, source).items():
        assert observation == "unsupported", (mode, message)
        assert "no_such_function" in message or "NcclAllReduce" in message, (
            mode
        )  # the message is not the first line of a stack trace


@pytest.mark.parametrize("source", ["bug-shapes", "bug-attribute", "bug-value", "bug-own-gradient"])
def test_a_bug_of_the_case_is_a_crash(environment_run, source):
    for mode, (observation, message) in observed(environment_run, source).items():
        assert observation == "crashed", (mode, message)


def test_a_missing_kernel_of_a_gradient_is_unsupported(environment_run):
    if environment_run.environment != "tf2.21":
        pytest.skip("the whole process ends in a failed check there")
    for mode, (observation, message) in observed(environment_run, "no-gradient-kernel").items():
        assert observation == "unsupported", (mode, message)
        assert "filter_size does not have enough elements" in message or "not supported on CPU" in message, mode


def test_the_onednn_variable_is_in_the_record(environment_run):
    assert {tuple(r["determinism_environment"].items()) for r in environment_run.run.records} == {
        (("TF_ENABLE_ONEDNN_OPTS", "0"),)
    }


def test_strings_are_compared(environment_run):
    assert {o for o, _ in observed(environment_run, "strings").values()} == {"equal"}


def test_an_op_at_import_is_refused(probe, tf_python):
    probe.python, probe.framework = str(tf_python("tf2.21")), "tensorflow"
    probe.plan("clean")
    head = "import tensorflow as tf\nfrom tfdet_probe import case\n"
    body = '@case("clean", modes=["host"])\ndef {}(make):\n    return make.host(lambda: [tf.constant([1.0]).numpy()])\n'
    probe.suite(head + body.format("innocent"), "test_a.py")
    run = probe(probe.suite(head + "WEIGHTS = tf.zeros([3])\n" + body.format("guilty"), "test_b.py"), *FAST)
    assert run.code == 3
    assert "test_b.py: runs an op when imported" in run.err
    assert run.records == []
