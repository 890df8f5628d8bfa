"""Finds: an op whose result comes from a state of its own: a clock, a counter.
Why: no input holds that state.
Example: `tf.timestamp()`.
"""

from ...faults import Fault

FAULT = Fault.SEED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "stateful"
