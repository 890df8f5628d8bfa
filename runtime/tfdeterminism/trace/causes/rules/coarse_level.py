"""Finds: that what differs first is a weight, a loss, or the output of a layer.
Why: a trace at these levels records no ops, so it tells at which step runs differ, and not by which op.
Example: the first pass of `locate`, at level weights.
"""

from ...faults import Fault

FAULT = Fault.NOT_AT_LEVEL


def matches(facts):  # facts: a cause_facts.CauseFacts
    return facts.definition["kind"] in ("weight", "loss", "layer")
