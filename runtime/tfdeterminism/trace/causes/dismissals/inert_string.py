"""Finds: a string from which no number comes that differs.
Why: names differ from run to run, and nothing that is computed depends on them.
Example: the path of a temporary file, a handle of a session.
"""

from ...faults import CauseKind
from ..def_use import may_forward


def holds(cause, facts):
    if cause.definition["dtype"] != "string" or cause.kind is CauseKind.STRUCTURE or cause.side:
        return False

    def differs(one):
        return facts.pair.ever_differs(one["id"], 0)

    reached = facts.flow().descendants(cause.definition, lambda one: may_forward(one) or differs(one))
    return not any(differs(one) and one["dtype"] != "string" for one in reached)


def count(dismissed, facts):
    return facts.count(lambda one: one["dtype"] == "string")
