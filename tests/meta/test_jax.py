"""Planted faults in a real JAX."""

import pytest

SUITE = """
import jax
import jax.numpy as jnp
import numpy as np
from tfdet_probe import case


@case("clean", ops=["dot_general"])
def clean(make):
    return make.forward(lambda x: x @ x, [make.uniform((8, 8))])


@case("clean-gradient", ops=["scatter"])
def clean_gradient(make):
    return make.gradient(lambda i, x: x[i], [make.integers(0, 5, (64,)), make.uniform((5, 3))], wrt=[1])


@case("drawn", ops=["add"])
def drawn(make):
    def draw(x):
        return jax.pure_callback(lambda x: np.random.default_rng().random(x.shape, np.float32), x, x) + x

    return make.forward(draw, [make.uniform((8,))])


@case("other-op", ops=["sort"])
def other_op(make):
    return make.forward(jnp.cos, [make.uniform((8,))])


@case("broken", ops=["add"])
def broken(make):
    return make.forward(lambda x: x.reshape(7), [make.uniform((8,))])
"""
SOURCES = ["clean", "clean-gradient", "drawn", "other-op", "broken"]


@pytest.fixture(scope="module")
def record_by_case(tmp_path_factory, tf_python, probe_in):
    """Return {(source, mode): record}."""
    probe = probe_in(tmp_path_factory.mktemp("jax"), tf_python("jax0.10"), "jax")
    probe.plan(*SOURCES)
    run = probe(probe.suite(SUITE), "--repeats", 3, "--processes", 2, "--timeout", 60)
    return {(r["source"], r["mode"]): r for r in run.records}


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_seeded_cases_agree_and_unseeded_ones_differ(record_by_case, mode):
    observations = {source: record_by_case[source, mode]["observation"] for source in SOURCES}
    assert observations == dict(zip(SOURCES, ["equal", "equal", "differs", "unsupported", "crashed"], strict=True))
    assert record_by_case["clean", mode]["ran_on"] == ["CPU:0"]
    assert record_by_case["drawn", mode]["differed"] == 6


def test_records_name_jax(record_by_case):
    assert record_by_case["clean", "jit"]["framework"] == {"name": "jax", "version": "0.10.2"}
