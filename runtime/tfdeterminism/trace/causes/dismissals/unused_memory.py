"""Finds: uninitialized memory of which nothing is computed that differs.
Why: what lay in it is chance, and a copy of it is but a copy.
Example: `torch.empty(8)` that is written before the first sum over it.
"""

from ..def_use import is_copy


def holds(cause, facts):
    if not cause.definition["attrs"].get("uninitialized"):
        return False

    def differs(one):
        return facts.pair.ever_differs(one["id"], cause.side)

    reached = facts.flow(cause.side).descendants(cause.definition, lambda one: is_copy(one) and differs(one))
    return not any(differs(one) and not is_copy(one) for one in reached)


def count(dismissed, facts):
    return facts.count(lambda one: one["attrs"].get("uninitialized") or is_copy(one))
