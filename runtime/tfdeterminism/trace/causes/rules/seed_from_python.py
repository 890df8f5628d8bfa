"""Finds: a value from Python that serves an op as its seed.
Why: the op draws what the seed says: the seed is at fault.
Example: Keras draws the seed of an initializer from Python's `random`, which was not seeded.
"""

from ...faults import Fault

FAULT = Fault.SEED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.is_from_host() and facts.seeded_op() is not None
