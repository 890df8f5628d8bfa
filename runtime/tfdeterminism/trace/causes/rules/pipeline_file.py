"""Finds: an element of an input pipeline whose line has read a file that was not the same.
Why: the pipeline did its work: its input differs.
Example: a `Dataset.from_generator` over lines of a log that grows.
"""

from ...faults import Fault

FAULT = Fault.FILE


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] == "input" and facts.is_from_file()
