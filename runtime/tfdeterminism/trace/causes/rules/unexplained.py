"""Finds: everything else: an op whose inputs agree and whose output differs.
Why: what is left is the op itself; run alone on its inputs it shows whether its kernel races.
Example: `CropAndResizeGradImage` on a GPU, which adds floats by atomics.
"""

from ...faults import Fault

FAULT = Fault.UNEXPLAINED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return True
