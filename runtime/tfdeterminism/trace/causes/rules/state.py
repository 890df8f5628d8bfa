"""Finds: the value of a variable that no recorded op has written.
Why: the variable was initialized otherwise, or changed before recording began.
Example: a weight that was drawn without a seed before the first recorded step.
"""

from ...faults import Fault

FAULT = Fault.SEED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "read"
