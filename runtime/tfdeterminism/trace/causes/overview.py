"""The data of the report's charts: a bar for each step, and the records around the first difference.

analysis is a find_causes.PairAnalysis; a slot is an index into its aligned records of two runs.
"""

import numpy

_MAX_WINDOW = 240  # records around the first difference
_MAX_BARS = 400


def steps(analysis):
    """Return at most _MAX_BARS of [first step, records, differing records]; adjacent steps share a bar."""
    step_counts = analysis.steps()
    width = -(-len(step_counts) // _MAX_BARS) or 1
    bars = [step_counts[begin:begin + width] for begin in range(0, len(step_counts), width)]
    return [[int(bar[0][0])] + [int(sum(counts[column] for counts in bar)) for column in (1, 2)] for bar in bars]


def first_difference_window(analysis):
    """Return the records of the first differing step around the first cause, in the order of execution."""
    if analysis.first_step is None:
        return []
    slots = analysis.step_slots(analysis.first_step)
    first_cause = (analysis.causes or [analysis.initial_difference])[0]
    positions = numpy.flatnonzero(slots == first_cause.slot) if first_cause.slot is not None else []
    start = max(0, int(positions[0]) - _MAX_WINDOW // 4) if len(positions) else 0
    rows = []
    for slot in slots[start:start + _MAX_WINDOW].tolist():
        group = int(analysis.pair.groups_of(slot))
        _, definition = analysis.pair.definition(group)
        is_culprit = slot in [cause.slot for cause in analysis.causes]
        rows.append({"op": definition["op"], "name": definition["node"], "output": definition["output"],
                     "kind": definition["kind"], "state": "culprit" if is_culprit else analysis.slot_state(slot),
                     "file": definition["file"], "line": definition["line"], "function": definition["function"]})
    return rows
