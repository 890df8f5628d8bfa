"""Finds: a value from Python that comes from a file that was not the same.
Why: what was read differs, and not what the program does with it.
Example: `numpy.load('data.npy')`, which each run writes anew at its end.
"""

from ...faults import Fault

FAULT = Fault.FILE


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.is_from_host() and facts.is_from_file()
