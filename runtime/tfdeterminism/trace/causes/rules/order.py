"""Finds: the same values in both runs, in another order.
Why: each value is right, so what chose the order is at fault, not what made the values.
Example: a loop over a set of words, whose order depends on PYTHONHASHSEED.
"""

from ...faults import CauseKind, Fault

FAULT = Fault.ORDER


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.cause.kind is CauseKind.ORDER
