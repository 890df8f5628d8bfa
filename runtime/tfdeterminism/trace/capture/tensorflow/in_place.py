"""What is overwritten where it lies: its digest is made first, or it would now and then be that of what came after.

A read of a reference variable of TensorFlow 1 hands on the variable's own memory, which an update writes. A sum over
workers is written where its summands lie, where Grappler has given several of them one memory (scoped allocators).
"""

import itertools

from . import op_traits
from .graph_keys import is_probed, reads_reference
from .graphs import forwarded_tensor

_REFERENCES = frozenset("RefIdentity RefEnter RefSwitch".split())


def digest_before_writes(graph, ops, made_digest):
    """Have writes wait for the digests of the reads that they depend on: no op runs that would not run anyway.

    ops: no session has seen them yet, in the order of creation; made_digest(op) is the digest of a read, made once.
    """
    # By variable: (the bit that says that an op depends on it, read).
    reads, numbers = graph._tfdet_reference_reads = getattr(graph, "_tfdet_reference_reads", ({}, itertools.count()))
    for op in ops:
        outside = op._control_flow_context is None
        behind = _dependency_mask(op)
        if outside and reads_reference(op):
            bit = 1 << next(numbers)
            behind |= bit
            reads.setdefault(_variable(op), []).append((bit, op))
        op._tfdet_behind = behind
        if outside and behind and op_traits.writes_variable(op.type) and op.inputs[0].dtype._is_ref_dtype:
            waits = [read for bit, read in reads.get(_variable(op), ()) if behind & bit]
            op._add_control_inputs([made_digest(read).op for read in waits])


def digest_before_sums(ops, made_digest):
    """Have sums over workers wait for the digests of what they sum.  made_digest(op) adds the digest of its output."""
    for op in ops:
        if op.type.startswith("CollectiveReduce"):
            summand = forwarded_tensor(op.inputs[0])
            if len(summand.op.outputs) == 1 and is_probed(summand.op, summand):
                op._add_control_inputs([made_digest(summand.op).op])


def _dependency_mask(op):
    """A bit for each read that an op depends on."""
    behind = 0
    for tensor in op.inputs:
        behind |= getattr(tensor.op, "_tfdet_behind", 0)
    for before in op.control_inputs:
        behind |= getattr(before, "_tfdet_behind", 0)
    return behind


def _variable(op):
    """The op whose memory is read or written."""
    holder = op.inputs[0].op
    while holder.type in _REFERENCES:
        holder = holder.inputs[0].op
    return holder
