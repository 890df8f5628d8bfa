"""What every patch needs: tensors from arguments, shapes, names, and TensorFlow's own gradients."""

import weakref

from tfdeterminism.patches import differentiable, exports, markers
from tfdeterminism.replace import NotCovered

_at_once = []  # type: list[bool]  # not empty while what is written without loops is made


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


def checked(value, holds, *words):
    """value; where holds (a scalar of bool) does not, an InvalidArgumentError with these words and tensors.

    For faults of shapes: the originals find them on any device, before they compute.
    """
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops, control_flow_ops
    with ops.control_dependencies([control_flow_ops.Assert(holds, list(words))]):
        return array_ops.identity(value)


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
    import numpy as np
    from tensorflow.python.framework import tensor_util
    if isinstance(value, (int, np.integer, np.ndarray)):  # 1.13 takes tensors alone
        return value
    return tensor_util.constant_value(value)


def cast(value, dtype):
    from tensorflow.python.ops import math_ops
    return math_ops.cast(value, dtype)


def select(condition, yes, no):
    """Rows of yes where condition (a vector) holds, else of no.  Not tf.where: its meaning changed with 2.0."""
    from tensorflow.python.ops import gen_math_ops
    return gen_math_ops.select(condition, yes, no)


def all_of(value, like):
    """A scalar in the dtype and the shape of `like`.

    Not zeros_like(like) + value: of a function's graph TensorFlow makes BroadcastTo of that, and before 2.3 a GPU has
    no such kernel for 64-bit integers.
    """
    from tensorflow.python.ops import array_ops
    return array_ops.fill(array_ops.shape(like), cast(value, like.dtype))


def original(module, name):
    """TensorFlow's own generated function, whether a patch stands in for it or not."""
    function = getattr(module, name)
    return getattr(function, "tfdeterminism_original", function)


def while_loop(condition, body, values, shapes, **options):
    try:
        from tensorflow.python.ops import while_loop as module  # from 2.12 on
    except ImportError:
        from tensorflow.python.ops import control_flow_ops as module
    return module.while_loop(condition, body, values, shape_invariants=shapes, **options)


def unrecorded():
    """with unrecorded(): what is computed here is no part of what a gradient tape differentiates."""
    return _tape().stop_recording()


def _tape():
    try:
        from tensorflow.python.eager import record as tape  # from 2.12 on
    except ImportError:
        from tensorflow.python.eager import tape
    return tape


class Scope(object):
    """with Scope(name, "SegmentSum") as scope: return scope.named(result)  # as the original op would be called."""

    def __init__(self, name, op_type):
        from tensorflow.python.framework import ops
        self._scope = ops.name_scope(name, op_type)
        self._wanted = name or op_type
        self._name = None

    def __enter__(self):
        self._used, key = _names_in_use(), _full_name(self._wanted)
        self._before = (key, self._used.get(key))
        self._name = self._scope.__enter__()
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, (NotCovered, TypeError, ValueError)):
            self._release()
        return self._scope.__exit__(kind, error, trace)

    def _release(self):
        """Leave the name to the original, which is called next."""
        key, count = self._before
        if self._wanted.endswith("/"):
            return
        self._used.pop((self._name or "").rstrip("/").lower(), None)
        self._used.pop(key, None)
        if count is not None:
            self._used[key] = count

    def named(self, result):
        """The result (one tensor, or several as a list) under the name that the caller asked for."""
        from tensorflow.python.eager import context
        from tensorflow.python.ops import array_ops
        if context.executing_eagerly():
            return result
        if isinstance(result, (list, tuple)):
            return list(array_ops.identity_n(list(result), name=self._name))
        return array_ops.identity(result, name=self._name)


def _names_in_use():
    """The graph's own table of names; an empty one outside of graphs, where nothing has a name."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    return {} if context.executing_eagerly() else getattr(ops.get_default_graph(), "_names_in_use", {})


def _full_name(name):
    """As the table has it: with the scope, in small letters."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    scope = "" if context.executing_eagerly() else ops.get_default_graph().get_name_scope()
    return "/".join(part for part in (scope, name) if part).lower()


class _Op(object):
    """An op as a gradient function sees it."""

    def __init__(self, op_type, inputs, attributes, outputs):
        self.type, self.name, self.device = op_type, op_type, ""
        self.inputs, self.outputs, self._attributes = list(inputs), list(outputs), attributes

    def get_attr(self, name):
        return self._attributes[name]


def like_op(op_type, forward, inputs, attributes=None):
    """forward(*inputs), differentiated as TensorFlow differentiates op_type.

    TensorFlow's registered gradient function is applied to the inputs and outputs: first and higher derivatives are
    those of the op that forward stands in for.
    """
    from tensorflow.python.framework import ops
    registry = getattr(ops, "gradient_registry", None) or ops._gradient_registry

    def gradient(inputs, outputs, *grads):
        return registry.lookup(op_type)(_Op(op_type, inputs, attributes or {}, outputs), *grads)
    # A function in a saved graph has no attributes that a gradient function could ask it for.
    return with_gradient(op_type, forward, inputs, gradient, bool(attributes), differentiable.has_gradient(op_type))


def with_gradient(op_type, forward, inputs, gradient, by_its_ops=False, in_graphs=True):
    """forward(*inputs), whose gradients to the inputs are gradient(inputs, outputs, *grads).

    in_graphs: False where op_type has no gradient, which graphs have to say in its name: savers trace all others.
    by_its_ops: in a saved graph they are those of the ops that forward is made of, else those of op_type.  See
    `portable`.

    Not tf.custom_gradient: its gradient functions hold tensors of the graph that called them.  Loops and functions are
    differentiated in copies of their graphs, where only what is handed to the gradient exists.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops
    with unrecorded():
        first = len(ops.get_default_graph().get_operations()) if by_its_ops and not context.executing_eagerly() else 0
        outputs = forward(*inputs)
        flat = _as_list(outputs)
        if context.executing_eagerly():
            sources, results = inputs, [array_ops.identity(one) for one in flat]
        else:
            sources = flat + inputs
            name = markers.marker(op_type, by_its_ops, ops.uid()) if in_graphs else op_type
            instead = _without_loops(forward, inputs, first) if by_its_ops else {}
            results = _marked(sources, len(flat), gradient if in_graphs else None, name, instead)
    many = len(flat)
    before = len(sources) - len(inputs)  # in a graph the results are sources too, without a gradient

    def backward(*grads):
        return [None] * before + _as_list(gradient(inputs, results[:many], *grads[:many]))

    _tape().record_operation(op_type, results, sources, backward)
    return results[:many] if isinstance(outputs, (list, tuple)) else results[0]


def _without_loops(forward, inputs, first):
    """What is written instead of forward(*inputs), which made the ops from the first on, if these have loops."""
    from tensorflow.python.framework import ops
    if not any(differentiable.is_unportable_loop(op.type) for op in ops.get_default_graph().get_operations()[first:]):
        return {}
    _at_once.append(True)
    try:
        return markers.instead(_as_list(forward(*inputs)))  # nobody runs these
    finally:
        _at_once.pop()


def at_once():
    """Whether what comes in pieces has to be made without a loop."""
    return bool(_at_once)


def _marked(tensors, many, gradient, name, attributes):
    """The tensors (`many` results, then the inputs) out of one op, where tf.gradients finds the gradient."""
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import array_ops
    exports.make_portable()
    marked = []  # type: list

    def backward(op, *grads):
        op = op or marked[0]()  # None: tf.saved_model.save traces the gradient function
        gradients = gradient(list(op.inputs)[many:], list(op.outputs)[:many], *grads[:many])
        return [None] * many + _as_list(gradients)

    if gradient is not None:
        ops.RegisterGradient(name)(backward)
    graph = ops.get_default_graph()
    with graph.gradient_override_map({"IdentityN": name}), graph._attr_scope(attributes):
        results = list(array_ops.identity_n(tensors))
    marked.append(weakref.ref(results[0].op))  # the registry keeps the function for ever: no graph with it
    return results


def _as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]
