"""The digests in conds and loops of TensorFlow 1: the context in which they are made, and how they leave it.

In a branch of a cond the digests are packed in the branch. They leave it through a Merge, whose other input is alive
when the branch is dead.
"""

import collections

import numpy

from . import internals as tf
from .pack import DigestPack


class ControlFlowPacker(object):
    """The packs of ops of one control flow context, with those of the conds inside it.

    keys: a graph_keys.GraphOpIds.
    """

    def __init__(self, keys):
        self._keys = keys

    def pack(self, context, ops, fed=frozenset()):
        """Return the DigestPack of these ops. The graph's control flow context must be `context`.

        fed: ops whose outputs the program feeds.
        """
        pack = DigestPack(self._keys, tf.has_gpus())
        # switched: {switch outputs: ops of this context that run only if all of these are alive}
        inner, switched = collections.OrderedDict(), collections.OrderedDict()
        alive = _always_live_outputs(context)
        switches = _switches(ops)
        for op in ops:
            child = _child(op._control_flow_context, context)
            if child is not None:
                if not child.IsWhileContext():  # a loop passes its digests to the recorder itself
                    inner.setdefault(child, []).append(op)
            elif op._control_flow_context is context and not (op in fed and len(op.outputs) > 1):
                outputs = switches.get(op, frozenset()) - alive
                if not outputs:
                    pack.add_op(op)
                elif _chain(outputs, switches) is not None:
                    switched.setdefault(outputs, []).append(op)
        for child, child_ops in inner.items():
            graph = child.pred.graph
            graph._set_control_flow_context(child)
            try:
                branch = self.pack(child, child_ops, fed)
                packed = branch.to_tensor()
            finally:
                graph._set_control_flow_context(context)
            _join(pack, branch, packed, [_SwitchOutput(child.pred, child.branch)])
        for outputs, child_ops in switched.items():
            branch = DigestPack(self._keys, tf.has_gpus())
            for op in child_ops:
                branch.add_op(op)
            _join(pack, branch, branch.to_tensor(), _chain(outputs, switches))
        return pack


def _join(pack, branch, packed, outputs):
    """Add a branch's pack, which is alive behind these switch outputs, the outermost first, and zero elsewhere.

    packed: its digests, a row of 8 bytes each; branch.present: whether each key of the pack has a row.
    """
    if not branch.keys:
        return
    zeros = numpy.zeros((sum(branch.present) + 1, 8), numpy.uint8)
    marker = tf.constant(numpy.ones((1, 8), numpy.uint8))
    rows = tf.control_flow_ops.switch(marker, outputs[-1].pred)[outputs[-1].index]
    if packed is not None:
        rows = tf.array_ops.concat([rows, packed], 0)
    for output in reversed(outputs):
        alternative = tf.control_flow_ops.switch(tf.constant(zeros), output.pred)[1 - output.index]
        rows = tf.control_flow_ops.merge([alternative, rows])[0]
    pack.add_branch(branch, rows)


def _chain(outputs, switches):
    """Return the switch outputs from the outermost in, or None if they are not nested."""
    ordered = sorted(outputs, key=lambda output: len(switches.get(output.pred.op, ())))
    for number, output in enumerate(ordered):
        if not switches.get(output.pred.op, frozenset()).issuperset(ordered[:number]):
            return None
    return ordered


def _always_live_outputs(context):
    """Return the switch outputs that are alive wherever a context's ops run."""
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
    """Return {op: the switch outputs on which it depends}; the gradient of a cond puts such ops outside of it."""
    dependencies = {}

    def outputs_before(tensor):
        outputs = dependencies.get(tensor.op, frozenset())
        if tensor.op.type in ("Switch", "RefSwitch"):
            outputs = outputs | {_SwitchOutput(tensor.op.inputs[1], tensor.value_index)}
        return outputs

    for op in ops:  # in the order of creation
        if op.type in ("Exit", "RefExit"):  # alive however often the loop ran
            continue
        if op.type in ("Merge", "RefMerge"):  # alive with either input; a back edge does not matter
            input_outputs = [outputs_before(tensor) for tensor in op.inputs if tensor.op.type != "NextIteration"]
            dependencies[op] = frozenset.intersection(*input_outputs)
            continue
        outputs = frozenset().union(*[outputs_before(tensor) for tensor in op.inputs])
        dependencies[op] = outputs.union(*[dependencies.get(other, frozenset()) for other in op.control_inputs])
    return dependencies


def _child(inner, outer):
    """Return the context directly inside `outer` in which `inner` lies, or None."""
    while inner is not None and inner is not outer and inner.outer_context is not outer:
        inner = inner.outer_context
    return None if inner is outer else inner
