"""Finds: an op that gets a variable which another op writes before or after, in no order.
Why: which value it gets is chance.
Example: a fetch of `weights * 2` in the run of a session that also applies a gradient to `weights`.
"""

from ...faults import Fault

FAULT = Fault.UNORDERED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.reads_unordered_variable()
