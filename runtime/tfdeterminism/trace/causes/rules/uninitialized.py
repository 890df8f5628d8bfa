"""Finds: memory of which something was read that nothing had written.
Why: it holds what was there before, which no seed decides.
Example: `torch.empty(8) + 1`.
"""

from ...faults import Fault

FAULT = Fault.UNINITIALIZED


def matches(facts):  # facts: a cause_facts.CauseFacts
    return bool(facts.definition["attrs"].get("uninitialized"))
