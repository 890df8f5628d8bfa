"""What the page draws of a comparison: a bar for each step, and the records around the first difference."""

import numpy

_MAX_WINDOW = 240  # records around the first difference
_MAX_BARS = 400


def steps(verdict):
    """At most _MAX_BARS of [first step, records, differing records]; adjacent steps share a bar."""
    found = verdict.steps()
    width = -(-len(found) // _MAX_BARS) or 1
    return [[int(found[at][0])] + [int(sum(one[column] for one in found[at:at + width])) for column in (1, 2)]
            for at in range(0, len(found), width)]


def first_difference_window(verdict):
    """Records of the first differing step around the first cause, in the order of execution."""
    if verdict.first_step is None:
        return []
    slots = verdict.step_slots(verdict.first_step)
    root = (verdict.causes or [verdict.preexisting])[0]
    at = numpy.flatnonzero(slots == root.slot) if root.slot is not None else []
    start = max(0, int(at[0]) - _MAX_WINDOW // 4) if len(at) else 0
    shown = []
    for slot in slots[start:start + _MAX_WINDOW].tolist():
        group = int(verdict.pair.groups_of(slot))
        _, one = verdict.pair.definition(group)
        shown.append({"op": one["op"], "name": one["node"], "output": one["output"], "kind": one["kind"],
                      "state": "culprit" if slot in [r.slot for r in verdict.causes] else verdict.slot_state(slot),
                      "file": one["file"], "line": one["line"], "function": one["function"]})
    return shown
