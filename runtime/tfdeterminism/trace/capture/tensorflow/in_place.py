"""What is overwritten where it lies: its digest is made first, or it would now and then be that of what came after.

A read of a reference variable of TensorFlow 1 hands on the variable's own memory, which an update writes. A sum over
workers is written where its summands lie, where Grappler has given several of them one memory (scoped allocators).
"""

from . import classes
from .keys import is_probed, reads_reference

_REFERENCES = frozenset("RefIdentity RefEnter RefSwitch".split())


def digest_before_writes(graph, ops, made_digest):
    """Have writes wait for the digests of the reads that they depend on: no op runs that would not run anyway.

    ops: no session has seen them yet, in the order of creation; made_digest(op) adds the digest of a read.
    """
    reads = graph._tfdet_reference_reads = getattr(graph, "_tfdet_reference_reads", [])
    digests = {}
    for op in ops:
        outside = op._control_flow_context is None
        behind = _behind(op)
        if outside and reads_reference(op):
            behind |= 1 << len(reads)
            reads.append((op, _variable(op)))
        op._tfdet_behind = behind
        if outside and behind and classes.writes(op.type) and op.inputs[0].dtype._is_ref_dtype:
            variable = _variable(op)
            waits = [read for number, (read, its) in enumerate(reads) if its is variable and behind >> number & 1]
            for read in waits:
                if read not in digests:
                    digests[read] = made_digest(read)
            op._add_control_inputs([digests[read].op for read in waits])


def digest_before_sums(ops, made_digest):
    """Have sums over workers wait for the digests of what they sum.  made_digest(op) adds the digest of its output."""
    for op in ops:
        if op.type.startswith("CollectiveReduce"):
            summand = op.inputs[0]
            while summand.op.type in classes.ALIASES and len(summand.op.inputs):
                summand = summand.op.inputs[0]
            if len(summand.op.outputs) == 1 and is_probed(summand.op, summand):
                op._add_control_inputs([made_digest(summand.op).op])


def _behind(op):
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
