"""How a graph says what a replaced op becomes where it is written: by the name of its gradient function."""

import os

KEY = "_gradient_op_type"
OURS = b"tfdeterminism/"
INSTEAD = "_tfdeterminism_instead"
# Drawn for each process, and not from Python's generator: what still has such a name is known to no other process.
_PROCESS = "".join("%02x" % byte for byte in bytearray(os.urandom(8)))


def marker(op_type, by_its_ops, number):
    """A name for a gradient function, which says what the op becomes where it is written.

    by_its_ops: what it is made of is differentiated, op by op; else it is what asks for op_type's function.
    """
    return "%s%s/%s/%s-%d" % (OURS.decode(), "ops" if by_its_ops else "call", op_type, _PROCESS, number)


def is_marker(name):
    return name.startswith(OURS.decode())


def instead(tensors):
    """Attributes of a marked node: where it is written, its results are these instead."""
    from tensorflow.core.framework import attr_value_pb2
    names = [tensor.name.encode() for tensor in tensors]
    return {INSTEAD: attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=names))}
