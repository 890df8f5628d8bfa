"""Conds and loops of TensorFlow 1: where in them a digest must be made, and how it gets out.

In a branch of a cond the digests are packed in the branch and leave it through a Merge, whose other side is alive when
the branch is dead.
"""

import collections

import numpy

from . import internals as tf
from .pack import DigestPack


class ControlFlowPacker(object):
    """Packs ops of one control flow context, with those of the conds inside it."""

    def __init__(self, keys):
        self._keys = keys

    def pack(self, context, ops, fed=frozenset()):
        """All that can be known of these ops; called with `context` as the graph's own."""
        pack = DigestPack(self._keys, tf.use_sum())
        inner, switched = collections.OrderedDict(), collections.OrderedDict()
        alive = _always_live_outputs(context)
        switches = _switches(ops)
        for op in ops:
            child = _child(op._control_flow_context, context)
            if child is not None:
                if not child.IsWhileContext():  # a loop hands over by itself
                    inner.setdefault(child, []).append(op)
            elif op._control_flow_context is context and not (op in fed and len(op.outputs) > 1):
                behind = switches.get(op, frozenset()) - alive
                if not behind:
                    pack.add_op(op)
                elif _chain(behind, switches) is not None:
                    switched.setdefault(behind, []).append(op)
        for child, its in inner.items():
            graph = child.pred.graph
            graph._set_control_flow_context(child)
            try:
                branch = self.pack(child, its, fed)
                packed = branch.to_tensor()
            finally:
                graph._set_control_flow_context(context)
            _join(pack, branch, packed, [_SwitchOutput(child.pred, child.branch)])
        for behind, its in switched.items():
            branch = DigestPack(self._keys, tf.use_sum())
            for op in its:
                branch.add_op(op)
            _join(pack, branch, branch.to_tensor(), _chain(behind, switches))
        return pack


def _join(pack, branch, packed, sides):
    """Add what is alive only behind these sides of switches, the outermost first; elsewhere it gives zeros."""
    if not branch.keys:
        return
    zeros = numpy.zeros((sum(branch.present) + 1, 8), numpy.uint8)
    ones = tf.constant(numpy.ones((1, 8), numpy.uint8))
    whole = tf.control_flow_ops.switch(ones, sides[-1].pred)[sides[-1].index]
    if packed is not None:
        whole = tf.array_ops.concat([whole, packed], 0)
    for side in reversed(sides):
        there = tf.control_flow_ops.switch(tf.constant(zeros), side.pred)[1 - side.index]
        whole = tf.control_flow_ops.merge([there, whole])[0]
    pack.add_branch(branch, whole)


def _chain(sides, switches):
    """Sides of switches from the outermost in; None where they are not nested, and so cannot be told apart."""
    ordered = sorted(sides, key=lambda side: len(switches.get(side.pred.op, ())))
    for number, side in enumerate(ordered):
        if not switches.get(side.pred.op, frozenset()).issuperset(ordered[:number]):
            return None
    return ordered


def _always_live_outputs(context):
    """The sides of switches that are alive wherever a context's ops run."""
    alive = set()
    while context is not None:
        if context.IsWhileContext():
            pivot = context.pivot  # LoopCond
            return frozenset(alive | ({_SwitchOutput(pivot, 1)} if pivot is not None else set()))
        alive.add(_SwitchOutput(context.pred, context.branch))
        context = context.outer_context
    return frozenset(alive)


class _SwitchOutput(object):
    """One output of the switches of one predicate; comparable, as tensors are not in all versions."""

    def __init__(self, pred, index):
        self.pred, self.index = pred, index

    def __eq__(self, other):
        return self.pred is other.pred and self.index == other.index

    def __hash__(self):
        return hash((id(self.pred), self.index))


def _switches(ops):
    """{op: the sides of switches that it lies behind}: outside a cond its gradient puts such ops."""
    behind = {}

    def sides_of(tensor):
        found = behind.get(tensor.op, frozenset())
        if tensor.op.type in ("Switch", "RefSwitch"):
            found = found | {_SwitchOutput(tensor.op.inputs[1], tensor.value_index)}
        return found

    for op in ops:  # in the order of creation
        if op.type in ("Exit", "RefExit"):  # alive however often the loop ran
            continue
        if op.type in ("Merge", "RefMerge"):  # alive with either input; a back edge does not matter
            known = [sides_of(tensor) for tensor in op.inputs if tensor.op.type != "NextIteration"]
            behind[op] = frozenset.intersection(*known)
            continue
        sides = frozenset().union(*[sides_of(tensor) for tensor in op.inputs])
        behind[op] = sides.union(*[behind.get(one, frozenset()) for one in op.control_inputs])
    return behind


def _child(inner, outer):
    """The context directly inside `outer` in which `inner` lies, or None."""
    while inner is not None and inner is not outer and inner.outer_context is not outer:
        inner = inner.outer_context
    return None if inner is outer else inner
