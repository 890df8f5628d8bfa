"""What a graph leaves the order open of: ops with a state that may run in any order. Read off the graph, never run."""

import collections

from . import op_traits
from .graphs import ancestors

_STATEFUL = ("random", "input")
_PYTHON = frozenset("PyFunc EagerPyFunc".split())
_LIMIT = 1 << 22  # ops looked at, of one graph: who writes what is asked for each write

LOOP = "turns of a parallel loop may reach it in any order, and they share its state"
WRITES = "nothing says whether it comes before or after another use of the same variable"
PYTHON = "two functions of Python may share a state, and nothing says which is first"


def mark_loop(ops, carried, draws):
    """Mark the ops of a parallel loop's body that no turn hands on to the next.

    carried: the ops by which one turn waits for another; draws(op): does a function that it calls have such an op?
    """
    carried = set(carried)
    for op in ops:
        if (is_stateful(op) or draws(op)) and not carried & ancestors([op]):
            op._tfdet_open = LOOP


def mark_session(ops, labels):
    """Mark what one run of a session leaves open. ops: what will run; labels: a variable_labels.VariableLabels."""
    uses = collections.defaultdict(list)
    for op in ops:
        if op.type in _PYTHON:
            uses[None].append(op)
        elif op_traits.accesses_variable(op.type) and len(op.inputs):
            uses[labels.find_label(op.inputs[0])].append(op)
    left = _LIMIT // (len(ops) or 1)
    for name, found in uses.items():
        changing = [op for op in found if name is None or op_traits.writes_variable(op.type)]
        left -= len(changing)
        if len(found) > 1 and changing and left > 0:
            for op in _unordered(found, changing):
                op._tfdet_open = PYTHON if name is None else WRITES


def ops_to_probe(ops, level):
    """Which of these ops are recorded: all, at "unordered" those that were marked, at the coarse levels none."""
    if level == "unordered":
        return [op for op in ops if getattr(op, "_tfdet_open", None)]
    return ops if level == "ops" else []


def add_control_inputs(sinks, outputs):
    """Have what a loop's turn hands on at its end wait for these ops, and no turn's begin: those that cannot so."""
    holders = [one.op for one in outputs if not (one.dtype.is_integer and one.shape.rank == 0)
               and one.op.type != "Placeholder"]
    left = []
    for sink in sinks:
        behind = ancestors([sink])
        free = [op for op in holders if op not in behind]
        if free:
            free[-1]._add_control_inputs([sink])
        else:
            left.append(sink)
    return left


def is_stateful(op):
    """Does it give something else each time that it is run, or change something?"""
    return op_traits.definition_kind(op.type) in _STATEFUL or op.type in _PYTHON or op_traits.writes_variable(op.type)


def loop_carried_ops(inputs, outputs):
    """The ops of a body's arguments by which a turn waits for the one before; not counters, nor what stays."""
    return [into.op for into, out in zip(inputs, outputs)
            if not (into.dtype.is_integer and into.shape.rank == 0) and _origin(out) is not into.op]


def loop_counter(inputs, outputs):
    """Of a loop's variables: the one that counts its turns, or None. outputs: what each is in the next turn."""
    for into, out in zip(inputs, outputs):
        made = _origin(out)
        counts = into.dtype.is_integer and into.shape.rank == 0 and made.type in ("Add", "AddV2")
        if counts and {into.op, "Const"} <= {one.op.type if one.op.type == "Const" else _origin(one)
                                             for one in made.inputs}:
            return into
    return None


def _origin(tensor):
    while tensor.op.type in ("Identity", "Switch", "NextIteration") and len(tensor.op.inputs):
        tensor = tensor.op.inputs[0]
    return tensor.op


def _unordered(found, changing):
    """Those that change what others use, before or after them."""
    behind = {op: ancestors([op]) for op in changing}
    apart = []
    for op in changing:
        for other in found:
            known = op in behind.get(other, ()) or other in behind[op]
            if other is not op and not known and op not in ancestors([other]):
                apart.append(op)
                break
    return apart
