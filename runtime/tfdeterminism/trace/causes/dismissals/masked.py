"""Finds: a value that differs, and all that it feeds in this step is the same.
Why: it was masked, rounded away, or compared with something large. It is kept: where nothing else is found later, it
may have come through a state.
Example: `tf.cond(tf.timestamp() > 1e6, ...)`, which takes the same branch at any time of day.
"""

from ...align.table import MISSING
from ...faults import CauseKind
from ...schema import traits
from ..cause import in_graph
from ..def_use import calls_python, returns_python_number


def holds(cause, facts):
    if cause.kind is not CauseKind.VALUE or cause.side or cause.definition["kind"] == "write":
        return False
    walk, seen = [cause.definition], {cause.definition["id"]}
    while walk:
        consumers = facts.flow().successors(walk.pop())
        consumers = [one for one in consumers if not _is_overwritten(one, facts)] if consumers else [None]
        if any(one is None or one["kind"] == "write" for one in consumers):
            return False
        for one in consumers:
            if facts.paths_differ and returns_python_number(one) and facts.differs_now(one):
                return False  # a number that Python reads may decide which way it goes
            if one["id"] not in seen and (not one["recorded"] or calls_python(one) or facts.differs_now(one)):
                walk.append(one)
            seen.add(one["id"])
    return True


def count(dismissed, facts):
    return len(dismissed)


def _is_overwritten(write, facts):
    """Had the variable another value, the same in both runs, before anything read what was written eagerly?"""
    if write["kind"] != "write" or in_graph(write):
        return False
    order, first = facts.pair.order[0], None
    now = [slot for slot in facts.slots_of(write) if facts.pair.step[0][slot] == facts.step]
    since = min([int(order[slot]) for slot in now] or [int(MISSING)])
    for one in facts.flow().successors(write):
        slots = facts.slots_of(one)
        slots = slots[(order[slots] > since) & (order[slots] != MISSING)]
        if len(slots) and (first is None or order[slots[0]] < first[0]):
            first = order[slots[0]], one, slots[0]
    return first is not None and traits.READS_ALL in first[1]["traits"] and not facts.differs(first[2])
