"""Finds: an op that may run before or after another that uses the same state; nothing says which.
Why: the order is chance even where both ops are deterministic.
Example: two `assign_add` of one variable in a session without a control dependency between them.
"""

from ...faults import CauseKind, Fault

FAULT = Fault.UNORDERED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.cause.kind is CauseKind.UNORDERED or facts.ran_unordered()
