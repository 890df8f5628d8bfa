"""Finds: a string that differs, while no number that is computed from it does.
Why: names differ from run to run, and nothing that is computed depends on them.
Example: the path of a temporary file, a handle of a session.
"""

from ...faults import CauseKind
from ..def_use import may_forward


def holds(cause, facts):  # cause: a cause.Cause, whose `side` is 0 or 1, its run; facts: a step_facts.StepFacts
    if cause.definition["dtype"] != "string" or cause.kind is CauseKind.STRUCTURE or cause.side:
        return False

    def differs(definition):
        return facts.pair.ever_differs(definition["id"], 0)

    reached = facts.flow().descendants(
        cause.definition, lambda definition: may_forward(definition) or differs(definition))
    return not any(differs(definition) and definition["dtype"] != "string" for definition in reached)


def count_records(dismissed, facts):
    return facts.count_differing(lambda definition: definition["dtype"] == "string")
