"""Finds: an op that draws random numbers.
Why: its inputs are the same, so its seed, or the state of its generator, is not.
Example: `tf.random.normal([8])` without a seed.
"""

from ...faults import Fault

FAULT = Fault.SEED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "random"
