"""What every patch needs: tensors from arguments, shapes, names, and TensorFlow's own gradients."""

from tfdeterminism.replace import NotCovered


def tensor(value, dtype=None):
    """value as a tensor; what only the original can take (a RaggedTensor, a KerasTensor) is left to it."""
    from tensorflow.python.framework import ops
    try:
        return ops.convert_to_tensor(value, dtype)
    except (TypeError, ValueError):
        raise NotCovered()


def need(condition):
    """Leave the call to the original unless condition holds: it has the message for what is wrong."""
    if not condition:
        raise NotCovered()


def is_real_or_complex(dtype):
    """Sums of these depend on their order; sums of integers do not."""
    return dtype.is_floating or dtype.is_complex


def dims(value):
    """The dimensions of a tensor of known rank: ints where known, scalar tensors where not."""
    from tensorflow.python.ops import array_ops
    known = value.shape.as_list()
    if None not in known:
        return known
    shape = array_ops.shape(value)
    return [shape[i] if size is None else size for i, size in enumerate(known)]


def product(sizes):
    """The product of ints and scalar tensors; 1 for none."""
    result = 1
    for size in sizes:
        result = result * size
    return result


def reshape(value, sizes):
    """value in a shape given by ints and scalar tensors."""
    from tensorflow.python.ops import array_ops
    return array_ops.reshape(value, sizes)


def constant(value):
    """The value as a NumPy array if it is known now, else None."""
    from tensorflow.python.framework import tensor_util
    return tensor_util.constant_value(value)


def cast(value, dtype):
    from tensorflow.python.ops import math_ops
    return math_ops.cast(value, dtype)


def select(condition, yes, no):
    """Rows of yes where condition (a vector) holds, else of no.  Not tf.where: its meaning changed with 2.0."""
    from tensorflow.python.ops import gen_math_ops
    return gen_math_ops.select(condition, yes, no)


def unrecorded():
    """with unrecorded(): what is computed here is no part of what a gradient tape differentiates."""
    try:
        from tensorflow.python.eager import record as tape  # from 2.12 on
    except ImportError:
        from tensorflow.python.eager import tape
    return tape.stop_recording()


class Scope(object):
    """with Scope(name, "SegmentSum") as scope: return scope.named(result)  # as the original op would be called."""

    def __init__(self, name, op_type):
        from tensorflow.python.framework import ops
        self._scope = ops.name_scope(name, op_type)
        self._name = None

    def __enter__(self):
        self._name = self._scope.__enter__()
        return self

    def __exit__(self, *error):
        return self._scope.__exit__(*error)

    def named(self, result):
        """The result (one tensor, or several as a list) under the name that the caller asked for."""
        from tensorflow.python.eager import context
        from tensorflow.python.ops import array_ops
        if context.executing_eagerly():
            return result
        if isinstance(result, (list, tuple)):
            return list(array_ops.identity_n(list(result), name=self._name))
        return array_ops.identity(result, name=self._name)


class _Op(object):
    """An op as a gradient function sees it."""

    def __init__(self, op_type, inputs, attributes, outputs):
        self.type, self.name, self.device = op_type, op_type, ""
        self.inputs, self.outputs, self._attributes = list(inputs), outputs, attributes

    def get_attr(self, name):
        return self._attributes[name]


def like_op(op_type, forward, inputs, attributes=None):
    """forward(*inputs), differentiated as TensorFlow differentiates op_type.

    TensorFlow's registered gradient function is applied to the inputs and outputs: first and higher derivatives are
    those of the op that forward stands in for.
    """
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import custom_gradient
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry
    made = []

    @custom_gradient.custom_gradient
    def call(*inputs):
        with unrecorded():
            outputs = forward(*inputs)

        def gradient(*grads):
            return registry.lookup(op_type)(_Op(op_type, inputs, attributes or {}, made), *grads)
        return outputs, gradient

    result = call(*inputs)
    made.extend(result if isinstance(result, (list, tuple)) else [result])
    return result
