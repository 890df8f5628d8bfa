"""Digests of many graph tensors in one tensor, handed over by one PyFunc."""

import numpy

from .. import digest
from . import digests, op_traits
from . import internals as tf
from .graph_keys import is_probed, likely_device

_ALIVE = -1  # no key
_TOGETHER = 1 << 15  # bytes; tensors up to this size are copied side by side, and digested by one op
_BUNCH = 64          # of so many at most
_NO_BITCAST = ("string", "qint8", "quint8", "qint16", "quint16", "qint32")


class DigestPack(object):
    """Made in the graph, control flow context and name scope in which its digests belong.

    keys: ids in the order in which they will be recorded; a write has no digest, only a place.
    """

    def __init__(self, keys, use_sum):
        self.keys, self.shapes, self.present, self.branches = [], [], [], []
        self._all_keys = keys
        self._use_sum = use_sum
        self._digests = []   # (tensor of digests, its rows); None in place of what is digested with others
        self._alike = {}     # (type, shape): [(place in _digests, tensor), ...]
        self._arrays = None

    def add_op(self, op):
        """Add all that is to be known of an op."""
        made = self._all_keys.keys_of_op(op)
        if op_traits.writes_variable(op.type):
            self._add(made[0], 0)
            return
        for key, tensor in zip(made, op.outputs):
            if is_probed(op, tensor):
                self.add(key, tensor)

    def add(self, key, tensor):
        shape = tf.shape_list(tensor)
        known = shape is not None and None not in shape
        made = getattr(tensor.op, "_tfdet_digest", None)
        one = self._chunked_digest(tensor) if made is None else (made, 1)
        self._add(key, digest.digest_shape(shape) if known else 0, one, True)

    def digest_for_all(self, op):
        """The digest of an op's only output, which every pack of the graph uses."""
        if getattr(op, "_tfdet_digest", None) is None:
            op._tfdet_digest = self._digest(op.outputs[0])
        return op._tfdet_digest

    def add_branch(self, branch, packed):
        """Take over the pack of a branch: its rows behind one that is zero where the branch was not taken."""
        start = len(self.keys)
        self.branches.append((start, start + 1 + len(branch.keys)))
        self.branches += [(start + 1 + first, start + 1 + last) for first, last in branch.branches]
        self._add(_ALIVE, 0, (packed, 1 + sum(branch.present)))
        self.keys += branch.keys
        self.shapes += branch.shapes
        self.present += branch.present

    def to_tensor(self):
        """uint8 [n, 8], or None if there is no digest."""
        if not self._digests:
            return None
        rows = [1 if one is None else one[1] for one in self._digests]
        first = numpy.cumsum([0] + rows)
        parts, order = [], []  # order: which of all rows each row of the parts is
        for place, one in enumerate(self._digests):
            if one is not None:
                parts.append(one[0])
                order.extend(range(first[place], first[place + 1]))
        for bunch in self._chunks():
            with tf.ops.device("/device:CPU:0"):
                parts.append(digests.fingerprints([tensor for _, tensor in bunch]))
            order.extend(first[place] for place, _ in bunch)
        whole = parts[0] if len(parts) == 1 else tf.array_ops.concat(parts, 0)
        if order == sorted(order):
            return whole
        with tf.ops.device("/device:CPU:0"):
            return tf.array_ops.gather(whole, numpy.argsort(order).astype(numpy.int32))

    def _chunks(self):
        return [alike[start:start + _BUNCH] for alike in self._alike.values()
                for start in range(0, len(alike), _BUNCH)]

    def unpack_records(self, packed, turn=None):
        """(keys, digests, shapes) of a packed value, an array, or None. turn: a number that becomes part of digests."""
        keys, shapes, present = self._as_arrays()
        digests = numpy.zeros(len(keys), numpy.uint64)
        if packed is not None:
            digests[present] = numpy.frombuffer(packed.tobytes(), "<u8")
        if turn is not None:
            digests[present] ^= numpy.uint64((int(turn) + 1) * digest.FIRST_FACTOR & 0xffffffffffffffff)
        if not self.branches:
            return keys, digests, shapes
        kept = keys != _ALIVE
        for first, last in self.branches:
            if not digests[first]:
                kept[first:last] = False
        return keys[kept], digests[kept], shapes[kept]

    def _as_arrays(self):
        """The lists, once they are whole: of hundreds of numbers in each step that is half of what a record costs."""
        if self._arrays is None:
            self._arrays = (numpy.array(self.keys, numpy.int64), numpy.array(self.shapes, numpy.uint32),
                            numpy.array(self.present, bool))
        return self._arrays

    def _add(self, key, shape, made=None, later=False):
        """made: (digests, rows), or None: there is none, or it comes later."""
        self.keys.append(key)
        self.shapes.append(shape)
        self.present.append(later or made is not None)
        if self.present[-1]:
            self._digests.append(made)

    def _chunked_digest(self, tensor):
        """(its digest, 1 row), or None: it is digested with others when all are known."""
        if self._is_on_gpu(tensor) or not _is_small(tensor):
            return self._digest(tensor), 1
        alike = tensor.dtype.base_dtype, tuple(tensor.shape.as_list())
        self._alike.setdefault(alike, []).append((len(self._digests), tensor))
        return None

    def _digest(self, tensor):
        if self._is_on_gpu(tensor):
            with tf.ops.device(tensor.device or None):
                return digests.weighted_sum(tensor)
        with tf.ops.device("/device:CPU:0"):
            return digests.fingerprint(tensor)

    def _is_on_gpu(self, tensor):
        """May it lie on a GPU, and can its bytes be summed there?"""
        on_gpu = self._use_sum and "CPU" not in (tensor.device or "").upper()
        return on_gpu and tensor.dtype.base_dtype.name not in _NO_BITCAST


def _is_small(tensor):
    """Does it cost less to copy it than to have an op of its own?"""
    shape = tf.shape_list(tensor)
    known = shape is not None and None not in shape and tensor.dtype.base_dtype.name not in _NO_BITCAST
    return known and int(numpy.prod(shape, dtype=numpy.int64)) * tensor.dtype.size <= _TOGETHER


def call_python_with(function, tensors, kept):
    """A stateful op that calls function(*arrays) in Python. kept: list that keeps it alive."""
    kept.append(function)
    token = tf.script_ops._py_funcs.insert(function)
    with tf.ops.device("/device:CPU:0"):
        return tf.gen_script_ops.py_func(tensors, token=token, Tout=[], name="hand_over")


def capture_inputs(capture, keys, ops, kept):
    """Ops that hand over the inputs of the op that is to be captured, if it is among these."""
    if capture is None:
        return []
    found = [op for op in ops if capture.is_wanted(*(keys.identify_graph(op.graph) + (op.name,)))]
    return [_keep(capture, keys.keys_of_op(op)[0], op, kept) for op in found]


def _keep(capture, key, op, kept):
    there = [one.dtype not in (tf.dtypes.resource, tf.dtypes.variant) for one in op.inputs]
    tensors = [tensor for tensor, one in zip(op.inputs, there) if one]

    def keep(*values):
        arrays = iter(values)
        capture.capture_graph_op(key, op, likely_device(op), [next(arrays) if one else None for one in there])
        return []

    return call_python_with(keep, tensors, kept)
