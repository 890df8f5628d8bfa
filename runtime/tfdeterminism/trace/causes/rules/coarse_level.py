"""Finds: a weight, a loss, or the output of a layer.
Why: these levels record no ops: they tell at which step runs differ, and not by what.
Example: the first pass of `locate`, at level weights.
"""

from ...faults import Fault

FAULT = Fault.NOT_AT_LEVEL


def matches(facts):
    return facts.definition["kind"] in ("weight", "loss", "layer", "step")
