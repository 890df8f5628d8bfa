"""Digests of many graph tensors in one tensor, which one PyFunc passes to the recorder."""

import numpy

from .. import digest
from . import digests, op_traits
from . import internals as tf
from .graph_keys import is_probed, likely_device

_ALIVE = -1  # stands in place of a key: the row tells whether a branch was taken
_TOGETHER = 1 << 15  # bytes; tensors up to this size are concatenated, and digested by one op
_MAX_CHUNK = 64      # tensors that are digested by one op
_NO_BITCAST = ("string", "qint8", "quint8", "qint16", "quint16", "qint32")


class DigestPack(object):
    """A pack of digests, built in the graph, control flow context and name scope of the tensors.

    The argument `keys` is a graph_keys.GraphOpIds. Attributes, in the order of recording: keys: ids of outputs; shapes:
    digests of their shapes; present: whether a key has a digest, which a write has not; branches: (begin, end) of the
    positions of each branch's keys.
    """

    def __init__(self, keys, has_gpus):
        self.keys, self.shapes, self.present, self.branches = [], [], [], []
        self._all_keys = keys
        self._has_gpus = has_gpus
        self._digests = []     # (tensor of digests, its rows); None for a tensor that is digested with others
        self._same_shape = {}  # {(type, shape): [(position in _digests, tensor), ...]}
        self._arrays = None

    def add_op(self, op):
        """Add all outputs of an op that are recorded."""
        op_keys = self._all_keys.keys_of_op(op)
        if op_traits.writes_variable(op.type):
            self._add(op_keys[0], 0)
            return
        for key, tensor in zip(op_keys, op.outputs):
            if is_probed(op, tensor):
                self.add(key, tensor)

    def add(self, key, tensor):
        shape = tf.shape_list(tensor)
        is_static = shape is not None and None not in shape
        op_digest = getattr(tensor.op, "_tfdet_digest", None)
        digest_and_rows = self._chunked_digest(tensor) if op_digest is None else (op_digest, 1)
        self._add(key, digest.digest_shape(shape) if is_static else 0, digest_and_rows, True)

    def digest_for_all(self, op):
        """Return the digest of an op's only output, which all packs of the graph share."""
        if getattr(op, "_tfdet_digest", None) is None:
            op._tfdet_digest = self._digest(op.outputs[0])
        return op._tfdet_digest

    def add_branch(self, branch, packed):
        """Add the pack of a branch. Its first row is zero if the branch was not taken."""
        start = len(self.keys)
        self.branches.append((start, start + 1 + len(branch.keys)))
        self.branches += [(start + 1 + begin, start + 1 + end) for begin, end in branch.branches]
        self._add(_ALIVE, 0, (packed, 1 + sum(branch.present)))
        self.keys += branch.keys
        self.shapes += branch.shapes
        self.present += branch.present

    def to_tensor(self):
        """Return the digests as uint8 [n, 8], or None if there are none."""
        if not self._digests:
            return None
        rows = [1 if entry is None else entry[1] for entry in self._digests]
        first_rows = numpy.cumsum([0] + rows)
        tensors, order = [], []  # order: which of all rows each row of the parts is
        for position, entry in enumerate(self._digests):
            if entry is not None:
                tensors.append(entry[0])
                order.extend(range(first_rows[position], first_rows[position + 1]))
        for chunk in self._chunks():
            with tf.ops.device("/device:CPU:0"):
                tensors.append(digests.fingerprints([tensor for _, tensor in chunk]))
            order.extend(first_rows[position] for position, _ in chunk)
        all_rows = tensors[0] if len(tensors) == 1 else tf.array_ops.concat(tensors, 0)
        if order == sorted(order):
            return all_rows
        with tf.ops.device("/device:CPU:0"):
            return tf.array_ops.gather(all_rows, numpy.argsort(order).astype(numpy.int32))

    def _chunks(self):
        return [tensors[start:start + _MAX_CHUNK] for tensors in self._same_shape.values()
                for start in range(0, len(tensors), _MAX_CHUNK)]

    def unpack_records(self, packed, turn=None):
        """Return (keys, digests, shapes) of a packed value, an array or None.

        turn: the number of the loop's iteration, which becomes part of the digests, or None.
        """
        keys, shapes, present = self._as_arrays()
        digests = numpy.zeros(len(keys), numpy.uint64)
        if packed is not None:
            digests[present] = numpy.frombuffer(packed.tobytes(), "<u8")
        if turn is not None:
            digests[present] ^= numpy.uint64((int(turn) + 1) * digest.FIRST_FACTOR & 0xffffffffffffffff)
        if not self.branches:
            return keys, digests, shapes
        is_live = keys != _ALIVE
        for begin, end in self.branches:
            if not digests[begin]:
                is_live[begin:end] = False
        return keys[is_live], digests[is_live], shapes[is_live]

    def _as_arrays(self):
        """Return the lists as arrays, converted once: the conversion would be half the cost of a record."""
        if self._arrays is None:
            self._arrays = (numpy.array(self.keys, numpy.int64), numpy.array(self.shapes, numpy.uint32),
                            numpy.array(self.present, bool))
        return self._arrays

    def _add(self, key, shape, digest_and_rows=None, has_digest_later=False):
        """Add a key. digest_and_rows: (digests, number of rows), or None if there is no digest or it comes later."""
        self.keys.append(key)
        self.shapes.append(shape)
        self.present.append(has_digest_later or digest_and_rows is not None)
        if self.present[-1]:
            self._digests.append(digest_and_rows)

    def _chunked_digest(self, tensor):
        """Return (the tensor's digest, 1 row), or None if it is digested together with others later."""
        if self._is_on_gpu(tensor) or not _is_small(tensor):
            return self._digest(tensor), 1
        shape_key = tensor.dtype.base_dtype, tuple(tensor.shape.as_list())
        self._same_shape.setdefault(shape_key, []).append((len(self._digests), tensor))
        return None

    def _digest(self, tensor):
        if self._is_on_gpu(tensor):
            with tf.ops.device(tensor.device or None):
                return digests.weighted_sum(tensor)
        with tf.ops.device("/device:CPU:0"):
            return digests.fingerprint(tensor)

    def _is_on_gpu(self, tensor):
        """Return whether a tensor may lie on a GPU, and its bytes can be summed there."""
        on_gpu = self._has_gpus and "CPU" not in (tensor.device or "").upper()
        return on_gpu and tensor.dtype.base_dtype.name not in _NO_BITCAST


def _is_small(tensor):
    """Return whether a copy of the tensor costs less than an op for its digest."""
    shape = tf.shape_list(tensor)
    is_static = shape is not None and None not in shape and tensor.dtype.base_dtype.name not in _NO_BITCAST
    return is_static and int(numpy.prod(shape, dtype=numpy.int64)) * tensor.dtype.size <= _TOGETHER


def call_python_with(function, tensors, kept):
    """Return a stateful op that calls function(*arrays) in Python. kept: list that keeps the function alive."""
    kept.append(function)
    token = tf.script_ops._py_funcs.insert(function)
    with tf.ops.device("/device:CPU:0"):
        return tf.gen_script_ops.py_func(tensors, token=token, Tout=[], name="hand_over")


def capture_inputs(capture, keys, ops, kept):
    """Return the ops that pass the inputs of the op to be captured to Python, if it is among these."""
    if capture is None:
        return []
    wanted_ops = [op for op in ops if capture.is_wanted(*(keys.identify_graph(op.graph) + (op.name,)))]
    return [_add_capture(capture, keys.keys_of_op(op)[0], op, kept) for op in wanted_ops]


def _add_capture(capture, key, op, kept):
    have_values = [tensor.dtype not in (tf.dtypes.resource, tf.dtypes.variant) for tensor in op.inputs]
    tensors = [tensor for tensor, exists in zip(op.inputs, have_values) if exists]

    def keep(*values):
        arrays = iter(values)
        inputs = [next(arrays) if exists else None for exists in have_values]
        capture.capture_graph_op(key, op, likely_device(op), inputs)
        return []

    return call_python_with(keep, tensors, kept)
