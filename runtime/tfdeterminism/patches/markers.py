"""The marks of replaced ops in a graph: the names of their gradient functions say what a saved graph has instead."""

import os

GRADIENT_ATTR = "_gradient_op_type"
MARKER_PREFIX = b"tfdeterminism/"
REPLACEMENT_ATTR = "_tfdeterminism_instead"
# Random for each process, not by Python's generator: no other process has gradient functions of these names.
_PROCESS = "".join("%02x" % byte for byte in bytearray(os.urandom(8)))


def marker(op_type, by_its_ops, number):
    """Return the name of a gradient function; it marks what the op becomes in a saved graph.

    Args:
        op_type: the replaced op.
        by_its_ops: whether the saved graph is differentiated op by op; otherwise by op_type's gradient function.
        number: unique in the process.
    """
    return "%s%s/%s/%s-%d" % (MARKER_PREFIX.decode(), "ops" if by_its_ops else "call", op_type, _PROCESS, number)


def is_marker(name):
    return name.startswith(MARKER_PREFIX.decode())


def replacement_attrs(tensors):
    """Return attributes of a marked node: the tensors that replace its results in a saved graph."""
    from tensorflow.core.framework import attr_value_pb2
    names = [tensor.name.encode() for tensor in tensors]
    return {REPLACEMENT_ATTR: attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(s=names))}
