"""Reads of the reference variables of TensorFlow 1.

Such a read hands on the variable's own memory. Whatever is computed from it may write the variable: then its digest is
made first, or it would now and then be that of the next step.
"""

from . import classes
from .keys import reads_reference

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
