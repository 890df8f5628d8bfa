"""Finds: a value that differs, although every op that reads it in this step has the same outputs in both runs.
Why: it was masked, rounded away, or compared with something large. It is reported only if no later step has another
cause, as it may have changed a state (a variable, a generator) that is not recorded.
Example: `tf.cond(tf.timestamp() > 1e6, ...)`, which takes the same branch at any time of day.
"""

from ...align.table import MISSING
from ...faults import CauseKind
from ...schema import traits
from ..cause import in_graph
from ..def_use import calls_python, returns_python_number


def holds(cause, facts):  # cause: a cause.Cause, whose `side` is 0 or 1, its run; facts: a step_facts.StepFacts
    if cause.kind is not CauseKind.VALUE or cause.side or cause.definition["kind"] == "write":
        return False
    pending, visited = [cause.definition], {cause.definition["id"]}
    while pending:
        uses = facts.flow().successors(pending.pop())
        uses = [use for use in uses if not _is_overwritten(use, facts)] if uses else [None]
        if any(use is None or use["kind"] == "write" for use in uses):
            return False
        for use in uses:
            if facts.paths_differ and returns_python_number(use) and facts.differs_now(use):
                return False  # Python may branch on a number that it reads
            if use["id"] not in visited and (not use["recorded"] or calls_python(use) or facts.differs_now(use)):
                pending.append(use)
            visited.add(use["id"])
    return True


def count_records(dismissed, facts):
    return len(dismissed)


def _is_overwritten(write, facts):
    """Return whether the variable got another value, equal in both runs, before anything read an eager write."""
    if write["kind"] != "write" or in_graph(write):
        return False
    order, first = facts.pair.order[0], None
    # A slot is a row of the table in which records of both runs that correspond to each other stand (align/table.py).
    slots_now = [slot for slot in facts.slots_of(write) if facts.pair.step[0][slot] == facts.step]
    written_at = min([int(order[slot]) for slot in slots_now] or [int(MISSING)])
    for use in facts.flow().successors(write):
        slots = facts.slots_of(use)
        slots = slots[(order[slots] > written_at) & (order[slots] != MISSING)]
        if len(slots) and (first is None or order[slots[0]] < first[0]):
            first = order[slots[0]], use, slots[0]
    return first is not None and traits.READS_ALL in first[1]["traits"] and not facts.differs(first[2])
