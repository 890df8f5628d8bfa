"""Finds: uninitialized memory that differs, while no value that is computed from it does, except copies.
Why: its contents differ by chance, and a copy computes nothing.
Example: `torch.empty(8)` that is written before the first sum over it.
"""

from ..def_use import is_copy


def holds(cause, facts):  # cause: a cause.Cause, whose `side` is 0 or 1, its run; facts: a step_facts.StepFacts
    if not cause.definition["attrs"].get("uninitialized"):
        return False

    def differs(definition):
        return facts.pair.ever_differs(definition["id"], cause.side)

    reached = facts.flow(cause.side).descendants(
        cause.definition, lambda definition: is_copy(definition) and differs(definition))
    return not any(differs(definition) and not is_copy(definition) for definition in reached)


def count_records(dismissed, facts):
    return facts.count_differing(lambda definition: definition["attrs"].get("uninitialized") or is_copy(definition))
