"""The forward ops of gradient ops, which are set in the graph, or for this thread.

TensorFlow calls an op's gradient function with the inputs and outputs that it needs, which may be none. The attributes
are always the same object that was used when the op was created, and identify it.
"""

from . import internals as tf

_REGISTRY = tf.optional("tensorflow.python.pywrap_tfe") or tf.optional("tensorflow.python.pywrap_tensorflow")

_LIMIT = 1 << 16  # eager ops whose gradient may be asked for


class Gradients(object):
    """The wrappers around TensorFlow's function that calls the gradient function of an op."""

    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._eager = {}  # {id of an eager op's attributes: (the attributes, key)}
        wrappers.wrap(tf.execute, "record_gradient", self._on_record)
        self._original = tf.backprop._gradient_function
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._gradient)

    def close(self):
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._original)

    def on_op_run(self, attrs, key):
        """Note the attributes of an eager op that has run. key: id of its first output in the trace."""
        if isinstance(attrs, tuple) and attrs:
            if len(self._eager) >= _LIMIT:
                self._eager.clear()
            self._eager[id(attrs)] = attrs, key

    def _on_record(self, original, op_type, inputs, attrs, outputs, *rest):
        """Note the attributes of a graph op that was just created."""
        tensors = [tensor for tensor in tf.nest.flatten(outputs) if tf.is_symbolic(tensor)]
        if tensors and attrs:
            graph = tensors[0].graph
            graph._tfdet_recorded = getattr(graph, "_tfdet_recorded", {})
            graph._tfdet_recorded[id(attrs)] = attrs, tensors[0].op
        return original(op_type, inputs, attrs, outputs, *rest)

    def _gradient(self, op_type, attrs, count, inputs, outputs, *rest):
        if self._recorder.active and tf.context.executing_eagerly():
            return self._run_eagerly(op_type, attrs, count, inputs, outputs, *rest)
        if self._recorder.active:
            graph = tf.ops.get_default_graph()
            recorded = getattr(graph, "_tfdet_recorded", {})
            forward = _find_by_attrs(attrs, recorded) or _forward_op(op_type, inputs, outputs)
            if forward is not None and forward.graph is graph:
                with graph._original_op(forward):
                    return self._original(op_type, attrs, count, inputs, outputs, *rest)
        return self._original(op_type, attrs, count, inputs, outputs, *rest)

    def _run_eagerly(self, op_type, attrs, count, inputs, outputs, *rest):
        local = self._recorder.local
        output_keys = [self._key(tensor) for tensor in outputs or () if tensor is not None]
        keys = [_find_by_attrs(attrs, self._eager)] + output_keys
        descriptions = [self._recorder.eager.describe(key) for key in keys if key is not None]
        if not descriptions:  # TensorFlow drops outputs that the gradient does not need
            ids = [getattr(tensor, "_tfdet_key", (None, None))[1] for tensor in inputs or () if tensor is not None]
            description = self._recorder.eager.find_by_inputs(op_type, ids)
            descriptions = [description] if description else []
        forward = descriptions[0] if descriptions else (op_type, [])  # (node, stack) of the op
        previous, local.forward = getattr(local, "forward", (None, [])), forward
        try:
            return self._original(op_type, attrs, count, inputs, outputs, *rest)
        finally:
            local.forward = previous

    def _key(self, tensor):
        """Return the key of a tensor in this trace, or None."""
        owner, key = getattr(tensor, "_tfdet_key", (None, None))
        return key if owner is self._recorder else None


def _find_by_attrs(attrs, noted):
    """Return the op or key that was noted for these attributes, or None."""
    entry = noted.get(id(attrs))
    return entry[1] if entry is not None and entry[0] is attrs else None


def _forward_op(op_type, inputs, outputs):
    for tensor in outputs or ():
        if tf.is_symbolic(tensor) and tensor.op.type == op_type:
            return tensor.op
    for tensor in inputs or ():
        if tf.is_symbolic(tensor):
            for op in tensor.consumers():
                if op.type == op_type and all(
                        argument is None or argument is op_argument
                        for argument, op_argument in zip(inputs, op.inputs)):
                    return op
    return None
