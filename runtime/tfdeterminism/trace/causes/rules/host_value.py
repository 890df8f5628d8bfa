"""Finds: any other value that Python hands to an op.
Why: no op made it: Python did, by chance, by time, or by an order of hashes.
Example: a batch that `numpy.random.permutation` chose without a seed.
"""

from ...faults import Fault

FAULT = Fault.HOST_VALUE


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.is_from_host()
