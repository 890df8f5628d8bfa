"""Helpers of all patches: tensors from arguments, shapes, names, and TensorFlow's own gradients."""

import weakref

from tfdeterminism.patches import differentiable, exports, markers
from tfdeterminism.replace import UseOriginalError

_without_loops_stack = []  # type: list[bool]  # not empty while a form without loops is being built


def tensor(value, dtype=None):
    """Return the value as a tensor; raise UseOriginalError for a type that only the original op accepts.

    Such types are RaggedTensor and KerasTensor.
    """
    from tensorflow.python.framework import ops
    try:
        return ops.convert_to_tensor(value, dtype)
    except (TypeError, ValueError):
        raise UseOriginalError()


def use_original_unless(condition):
    """Leave the call to the original unless the condition holds: its error message is the right one."""
    if not condition:
        raise UseOriginalError()


def check_at_run_time(value, holds, *message):
    """Return the value, after checking a condition at run time, as the originals check shapes before they compute.

    Args:
        value: a tensor.
        holds: a scalar bool tensor.
        message: text and tensors for the InvalidArgumentError if it is false.
    """
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops, control_flow_ops
    with ops.control_dependencies([control_flow_ops.Assert(holds, list(message))]):
        return array_ops.identity(value)


def is_real_or_complex(dtype):
    """Return whether sums in this dtype depend on their order; sums of integers do not."""
    return dtype.is_floating or dtype.is_complex


def dims(value):
    """Return the dimensions of a tensor of known rank: ints where known, scalar tensors where not."""
    from tensorflow.python.ops import array_ops
    static_sizes = value.shape.as_list()
    if None not in static_sizes:
        return static_sizes
    shape = array_ops.shape(value)
    return [shape[i] if size is None else size for i, size in enumerate(static_sizes)]


def product(sizes):
    """Return the product of ints and scalar tensors; 1 for none."""
    result = 1
    for size in sizes:
        result = result * size
    return result


def reshape(value, sizes):
    """Return the value in a shape given by ints and scalar tensors."""
    from tensorflow.python.ops import array_ops
    return array_ops.reshape(value, sizes)


def constant(value):
    """Return the value as a NumPy array (an int as it is) if it is constant, otherwise None."""
    import numpy as np
    from tensorflow.python.framework import tensor_util
    if isinstance(value, (int, np.integer, np.ndarray)):  # in 1.13 constant_value() accepts tensors only
        return value
    return tensor_util.constant_value(value)


def cast(value, dtype):
    from tensorflow.python.ops import math_ops
    return math_ops.cast(value, dtype)


def select(condition, yes, no):
    """Return rows of `yes` where the condition (a vector) is true, otherwise of `no`.

    tf.where differs in 2.x.
    """
    from tensorflow.python.ops import gen_math_ops
    return gen_math_ops.select(condition, yes, no)


def fill_like(value, like):
    """Return a tensor of the dtype and shape of `like`, filled with a scalar.

    It is not zeros_like(like) + value: in a function's graph TensorFlow replaces that by BroadcastTo, and before 2.3 a
    GPU has no such kernel for 64-bit integers.
    """
    from tensorflow.python.ops import array_ops
    return array_ops.fill(array_ops.shape(like), cast(value, like.dtype))


def original(module, name):
    """Return TensorFlow's own generated function, even if a patch has replaced it."""
    function = getattr(module, name)
    return getattr(function, "tfdeterminism_original", function)


def while_loop(condition, body, values, shapes, **options):
    try:
        from tensorflow.python.ops import while_loop as module  # from 2.12 on
    except ImportError:
        from tensorflow.python.ops import control_flow_ops as module
    return module.while_loop(condition, body, values, shape_invariants=shapes, **options)


def without_tape():
    """Return a context in which gradient tapes record nothing."""
    return _tape().stop_recording()


def _tape():
    try:
        from tensorflow.python.eager import record as tape  # from 2.12 on
    except ImportError:
        from tensorflow.python.eager import tape
    return tape


class OpNameScope(object):
    """The name scope of a replaced op; its result gets the name that the original op would have.

    Usage: with OpNameScope(name, "SegmentSum") as scope: return scope.named(result)
    """

    def __init__(self, name, op_type):
        from tensorflow.python.framework import ops
        self._scope = ops.name_scope(name, op_type)
        self._requested_name = name or op_type
        self._name = None

    def __enter__(self):
        self._used, key = _names_in_use(), _full_name(self._requested_name)
        self._name_count = (key, self._used.get(key))
        self._name = self._scope.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, (UseOriginalError, TypeError, ValueError)):
            self._release()
        return self._scope.__exit__(kind, error, trace)

    def _release(self):
        """Free the name for the original op, which is called next."""
        key, count = self._name_count
        if self._requested_name.endswith("/"):
            return
        self._used.pop((self._name or "").rstrip("/").lower(), None)
        self._used.pop(key, None)
        if count is not None:
            self._used[key] = count

    def named(self, result):
        """Return the result (one tensor, or several as a list) under the name that the caller asked for."""
        from tensorflow.python.eager import context
        from tensorflow.python.ops import array_ops
        if context.executing_eagerly():
            return result
        if isinstance(result, (list, tuple)):
            return list(array_ops.identity_n(list(result), name=self._name))
        return array_ops.identity(result, name=self._name)


def _names_in_use():
    """Return the graph's table of names in use; empty outside of graphs, where ops have no names."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    return {} if context.executing_eagerly() else getattr(ops.get_default_graph(), "_names_in_use", {})


def _full_name(name):
    """Return a name in the form of the table: with its scope, in lower case."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    scope = "" if context.executing_eagerly() else ops.get_default_graph().get_name_scope()
    return "/".join(part for part in (scope, name) if part).lower()


class _Op(object):
    """The parts of an op that a registered gradient function reads."""

    def __init__(self, op_type, inputs, attributes, outputs):
        self.type, self.name, self.device = op_type, op_type, ""
        self.inputs, self.outputs, self._attributes = list(inputs), list(outputs), attributes

    def get_attr(self, name):
        return self._attributes[name]


def with_gradient_of_op(op_type, forward, inputs, attributes=None):
    """Compute forward(*inputs), with the gradient that TensorFlow registers for an op.

    Args:
        op_type: the replaced op; its gradient function is applied to the inputs and outputs, so first and higher
            derivatives are its own.
        forward: computes the outputs.
        inputs: tensors.
        attributes: of the op, for the gradient function.

    Returns:
        The outputs of forward.
    """
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry

    def gradient(inputs, outputs, *grads):
        return registry.lookup(op_type)(_Op(op_type, inputs, attributes or {}, outputs), *grads)
    # A function in a saved graph has no attributes that a gradient function could ask it for.
    return with_gradient(op_type, forward, inputs, gradient, bool(attributes), differentiable.has_gradient(op_type))


def with_gradient(op_type, forward, inputs, gradient, by_its_ops=False, in_graphs=True):
    """Compute forward(*inputs), with a gradient function.

    Not tf.custom_gradient: its gradient functions hold tensors of the graph that called them, but loops and functions
    are differentiated in copies of their graphs, which have the gradient function's arguments only.

    Args:
        op_type: the replaced op.
        forward: computes the outputs.
        inputs: tensors.
        gradient: gradient(inputs, outputs, *grads) -> the gradients to the inputs.
        by_its_ops: whether a saved graph is differentiated op by op; otherwise by the gradient function of op_type.
            See the module portable.
        in_graphs: False if op_type has no gradient; then graphs name it as such, because savers trace all others.

    Returns:
        The outputs of forward.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops
    with without_tape():
        first = len(ops.get_default_graph().get_operations()) if by_its_ops and not context.executing_eagerly() else 0
        outputs = forward(*inputs)
        flat = _as_list(outputs)
        if context.executing_eagerly():
            sources, results = inputs, [array_ops.identity(output) for output in flat]
        else:
            sources = flat + inputs
            name = markers.marker(op_type, by_its_ops, ops.uid()) if in_graphs else op_type
            replacement = _loopless_attrs(forward, inputs, first) if by_its_ops else {}
            results = _mark_results(sources, len(flat), gradient if in_graphs else None, name, replacement)
    output_count = len(flat)
    source_count = len(sources) - len(inputs)  # in a graph the results are sources too, without a gradient

    def backward(*grads):
        return [None] * source_count + _as_list(gradient(inputs, results[:output_count], *grads[:output_count]))

    _tape().record_operation(op_type, results, sources, backward)
    return results[:output_count] if isinstance(outputs, (list, tuple)) else results[0]


def _loopless_attrs(forward, inputs, first):
    """Return attributes that name a form of forward(*inputs) without loops, if forward made loops.

    The form is for saved graphs. first: the index of the first op that forward added to the graph.
    """
    from tensorflow.python.framework import ops
    if not any(differentiable.is_unportable_loop(op.type) for op in ops.get_default_graph().get_operations()[first:]):
        return {}
    _without_loops_stack.append(True)
    try:
        return markers.replacement_attrs(_as_list(forward(*inputs)))  # only saved, never run
    finally:
        _without_loops_stack.pop()


def without_loops():
    """Return whether loops are not allowed, because a form without loops is being built."""
    return bool(_without_loops_stack)


def _mark_results(tensors, result_count, gradient, name, attributes):
    """Pass the tensors (results, then inputs) through one IdentityN, whose gradient tf.gradients uses.

    result_count: how many of the tensors are results.
    """
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops
    exports.make_portable()
    op_reference = []  # type: list

    def backward(op, *grads):
        op = op or op_reference[0]()  # None: tf.saved_model.save traces the gradient function
        gradients = gradient(list(op.inputs)[result_count:], list(op.outputs)[:result_count], *grads[:result_count])
        return [None] * result_count + _as_list(gradients)

    if gradient is not None:
        ops.RegisterGradient(name)(backward)
    graph = ops.get_default_graph()
    with graph.gradient_override_map({"IdentityN": name}), graph._attr_scope(attributes):
        results = list(array_ops.identity_n(tensors))
    op_reference.append(weakref.ref(results[0].op))  # weak: the registry keeps the function, but not the graph, alive
    return results


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]
