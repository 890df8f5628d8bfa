"""Cases of random ops, generators and clocks.

@case gives the source of nondeterminism, patterns of the ops that must run, and the modes; make, a CaseBuilder,
draws the inputs and returns what is run: forward, gradient, or a program that each repeat builds anew.
unplaced: why no ops are checked.
"""

import numpy as np
import tensorflow as tf
from tfdet_probe import case

tf1 = getattr(tf.compat, "v1", tf)


@case("random-op-without-seed", ops=["RandomStandardNormal"])
def normal_without_seed(make):
    return make.program(lambda: tf.random.normal((64,)))


@case("multinomial", ops=["Multinomial"], modes=("eager", "session"))
def multinomial(make):
    logits = make.uniform((16, 100))

    def program():
        tf1.set_random_seed(7)
        return tf.random.categorical(tf.constant(logits), 1000, seed=3)
    return make.program(program)


def generator_class():
    return getattr(tf.random, "Generator", None) or tf.random.experimental.Generator


@case("stateful-random-ops", ops=["StatefulStandardNormalV2|RngReadAndSkip"], modes=("eager",))
def generator_with_seed(make):
    def program():
        generator = generator_class().from_seed(5)
        return [generator.normal((1000,)), generator.uniform((1000,))]
    return make.program(program)


@case("generator-without-seed", ops=["NonDeterministicInts"], modes=("eager",))
def generator_without_seed(make):
    return make.program(lambda: generator_class().from_non_deterministic_state().normal((64,)))


@case("keras3-initializers", modes=("eager",), unplaced="the seed is drawn in Python")
def keras_initializer(make):
    """Newer Keras draws the seed of an initialiser from Python, not from tf.random.set_seed."""
    def program():
        tf1.set_random_seed(7)
        return np.array(tf.keras.initializers.get("glorot_uniform")((32, 32)))
    return make.program(program)


@case("timestamp", ops=["Timestamp"])
def timestamp(make):
    return make.program(tf.timestamp)
