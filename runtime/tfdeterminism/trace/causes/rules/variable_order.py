"""Finds: a write by a fixed function of its inputs, all of which agree.
Why: then the value that the variable had before it differs: another write came first.
Example: `AssignAdd` into a reference variable beside an `Assign` of the same.
"""

from ...faults import Fault
from ...schema import traits

FAULT = Fault.ORDER


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "write" and traits.ORDER_DEPENDENT in facts.definition["traits"]
