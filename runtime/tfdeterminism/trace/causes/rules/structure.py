"""Finds: a record that one run has and the other has not, or that other inputs feed.
Why: from there on the two runs compute different things, so values tell nothing.
Example: a branch on the time of day: `if time.time() % 2 > 1: loss = loss * 2`.
"""

from ...faults import CauseKind, Fault

FAULT = Fault.STRUCTURE


def matches(facts):  # facts: a CauseFacts, causes/cause_facts.py
    return facts.cause.kind is CauseKind.STRUCTURE
