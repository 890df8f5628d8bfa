"""The digests of tensors that are overwritten in place, which must be computed before the write.

A read of a reference variable of TensorFlow 1 returns the variable's own memory, which an update writes. Grappler's
scoped allocators give the summands of several workers one memory, into which the sum is written.
"""

import itertools

from . import op_traits
from .graph_keys import is_probed, reads_reference
from .graphs import forwarded_tensor

_REFERENCES = frozenset("RefIdentity RefEnter RefSwitch".split())


def digest_before_writes(graph, ops, made_digest):
    """Make writes wait for the digests of the reads that they depend on. No additional op runs.

    ops: new ops, in the order of creation; made_digest(op): returns the digest of a read, made once.
    """
    # {variable: [(bit in the masks of ops that depend on the read, read)]}.
    reads, numbers = graph._tfdet_reference_reads = getattr(graph, "_tfdet_reference_reads", ({}, itertools.count()))
    for op in ops:
        is_unconditional = op._control_flow_context is None
        mask = _dependency_mask(op)
        if is_unconditional and reads_reference(op):
            bit = 1 << next(numbers)
            mask |= bit
            reads.setdefault(_variable(op), []).append((bit, op))
        op._tfdet_behind = mask
        if is_unconditional and mask and op_traits.writes_variable(op.type) and op.inputs[0].dtype._is_ref_dtype:
            waits = [read for bit, read in reads.get(_variable(op), ()) if mask & bit]
            op._add_control_inputs([made_digest(read).op for read in waits])


def digest_before_sums(ops, made_digest):
    """Make sums over workers wait for the digests of their summands.

    made_digest(op): adds the digest of its output.
    """
    for op in ops:
        if op.type.startswith("CollectiveReduce"):
            summand = forwarded_tensor(op.inputs[0])
            if len(summand.op.outputs) == 1 and is_probed(summand.op, summand):
                op._add_control_inputs([made_digest(summand.op).op])


def _dependency_mask(op):
    """Return a bit mask of the reads that an op depends on."""
    mask = 0
    for tensor in op.inputs:
        mask |= getattr(tensor.op, "_tfdet_behind", 0)
    for control_input in op.control_inputs:
        mask |= getattr(control_input, "_tfdet_behind", 0)
    return mask


def _variable(op):
    """Return the op whose memory is read or written."""
    holder = op.inputs[0].op
    while holder.type in _REFERENCES:
        holder = holder.inputs[0].op
    return holder
