"""The stateful ops whose order a graph leaves undefined, found by an analysis of the graph."""

import collections

from . import op_traits
from .graphs import ancestors

_STATEFUL = ("random", "input")  # kinds of ops, as op_traits.definition_kind() returns them
_PYTHON = frozenset("PyFunc EagerPyFunc".split())
_LIMIT = 1 << 22  # ops that are visited in one graph: all ops once for each write

LOOP = "iterations of a parallel loop may reach it in any order, and they share its state"
WRITES = "nothing says whether it comes before or after another use of the same variable"
PYTHON = "two functions of Python may share a state, and nothing says which is first"


def mark_loop(ops, carried, calls_stateful):
    """Mark the stateful ops of a parallel loop's body that do not depend on the previous iteration.

    carried: the ops by which an iteration waits for the previous one; calls_stateful(op): returns whether a function
    that the op calls has a stateful op.
    """
    carried = set(carried)
    for op in ops:
        if (is_stateful(op) or calls_stateful(op)) and not carried & ancestors([op]):
            op._tfdet_unordered = LOOP


def mark_session(ops, labels):
    """Mark the ops whose order a session.run leaves open.

    ops: those that will run; labels: a variable_labels.VariableLabels.
    """
    uses = collections.defaultdict(list)  # {label of a variable, or None for all functions of Python: ops}
    for op in ops:
        if op.type in _PYTHON:
            uses[None].append(op)
        elif op_traits.accesses_variable(op.type) and len(op.inputs):
            uses[labels.find_label(op.inputs[0])].append(op)
    remaining = _LIMIT // (len(ops) or 1)
    for name, same_state in uses.items():
        writes = [op for op in same_state if name is None or op_traits.writes_variable(op.type)]
        remaining -= len(writes)
        if len(same_state) > 1 and writes and remaining > 0:
            for op in _unordered(same_state, writes):
                op._tfdet_unordered = PYTHON if name is None else WRITES


def ops_to_probe(ops, level):
    """Return the ops to record: all at level "ops", the marked ones at "unordered", else none."""
    if level == "unordered":
        return [op for op in ops if getattr(op, "_tfdet_unordered", None)]
    return ops if level == "ops" else []


def add_control_inputs(sinks, outputs):
    """Make the end of a loop's iteration wait for the sinks, and return the sinks for which it cannot.

    sinks: ops that pass digests to the recorder; outputs: the loop variables' next values. A counter does not wait, so
    that iterations can still overlap; an argument that is passed on unchanged has no op that could wait.
    """
    waiting_ops = [tensor.op for tensor in outputs if not (tensor.dtype.is_integer and tensor.shape.rank == 0)
               and tensor.op.type != "Placeholder"]
    remaining = []
    for sink in sinks:
        dependencies = ancestors([sink])
        independent = [op for op in waiting_ops if op not in dependencies]
        if independent:
            independent[-1]._add_control_inputs([sink])
        else:
            remaining.append(sink)
    return remaining


def is_stateful(op):
    """Return whether an op changes a state, or gives another result each time it runs."""
    return op_traits.definition_kind(op.type) in _STATEFUL or op.type in _PYTHON or op_traits.writes_variable(op.type)


def loop_carried_ops(inputs, outputs):
    """Return the ops of a body's arguments by which an iteration waits for the previous one, without counters."""
    return [argument.op for argument, result in zip(inputs, outputs)
            if not (argument.dtype.is_integer and argument.shape.rank == 0) and _origin(result) is not argument.op]


def loop_counter(inputs, outputs):
    """Return the loop variable that counts iterations, or None. outputs: the variables' next values."""
    for argument, result in zip(inputs, outputs):
        origin = _origin(result)
        is_counter = argument.dtype.is_integer and argument.shape.rank == 0 and origin.type in ("Add", "AddV2")
        if is_counter and {argument.op, "Const"} <= {tensor.op.type if tensor.op.type == "Const" else _origin(tensor)
                                                     for tensor in origin.inputs}:
            return argument
    return None


def _origin(tensor):
    """Return the op that computes a tensor, behind the ops that only pass it on."""
    while tensor.op.type in ("Identity", "Switch", "NextIteration") and len(tensor.op.inputs):
        tensor = tensor.op.inputs[0]
    return tensor.op


def _unordered(ops, writes):
    """Return the ops that change a state which another op uses, without an order between the two."""
    dependencies = {op: ancestors([op]) for op in writes}
    unordered = []
    for op in writes:
        for other in ops:
            is_ordered = op in dependencies.get(other, ()) or other in dependencies[op]
            if other is not op and not is_ordered and op not in ancestors([other]):
                unordered.append(op)
                break
    return unordered
