"""Finds: uninitialized memory of which nothing is computed that differs.
Why: what lay in it is chance, and a copy of it is but a copy.
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


def count(dismissed, facts):
    return facts.count(lambda definition: definition["attrs"].get("uninitialized") or is_copy(definition))
