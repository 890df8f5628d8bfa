"""Which op's gradient an op belongs to: told to TensorFlow's graph, or to this thread.

TensorFlow hands the gradient of an op what it needs: neither inputs nor outputs, for some. But the attributes are those
that it was given when the op was made, the same object.
"""

from . import internals as tf

_REGISTRY = tf.optional("tensorflow.python.pywrap_tfe") or tf.optional("tensorflow.python.pywrap_tensorflow")

_LIMIT = 1 << 16  # eager ops whose gradient may be asked for


class Gradients(object):
    def __init__(self, recorder, wrappers):
        self._recorder = recorder
        self._eager = {}  # id of an eager op's attributes: (these, key)
        wrappers.wrap(tf.execute, "record_gradient", self._recorded)
        self._original = tf.backprop._gradient_function
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._gradient)

    def close(self):
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._original)

    def on_op_run(self, attrs, key):
        """An eager op has run. key: of its first output."""
        if isinstance(attrs, tuple) and attrs:
            if len(self._eager) >= _LIMIT:
                self._eager.clear()
            self._eager[id(attrs)] = attrs, key

    def _recorded(self, original, op_type, inputs, attrs, outputs, *rest):
        """The gradient of an op that was just made may be asked for."""
        made = [one for one in tf.nest.flatten(outputs) if tf.is_symbolic(one)]
        if made and attrs:
            graph = made[0].graph
            graph._tfdet_recorded = getattr(graph, "_tfdet_recorded", {})
            graph._tfdet_recorded[id(attrs)] = attrs, made[0].op
        return original(op_type, inputs, attrs, outputs, *rest)

    def _gradient(self, op_type, attrs, count, inputs, outputs, *rest):
        if self._recorder.active and tf.context.executing_eagerly():
            return self._eagerly(op_type, attrs, count, inputs, outputs, *rest)
        if self._recorder.active:
            graph = tf.ops.get_default_graph()
            forward = _of_these(attrs, getattr(graph, "_tfdet_recorded", {})) or _forward_op(op_type, inputs, outputs)
            if forward is not None and forward.graph is graph:
                with graph._original_op(forward):
                    return self._original(op_type, attrs, count, inputs, outputs, *rest)
        return self._original(op_type, attrs, count, inputs, outputs, *rest)

    def _eagerly(self, op_type, attrs, count, inputs, outputs, *rest):
        local = self._recorder.local
        keys = [_of_these(attrs, self._eager)] + [self._key(one) for one in outputs or () if one is not None]
        found = [self._recorder.eager.describe(key) for key in keys if key is not None]
        if not found:  # TensorFlow drops outputs that the gradient does not need
            ids = [getattr(one, "_tfdet_key", (None, None))[1] for one in inputs or () if one is not None]
            found = [one for one in [self._recorder.eager.find_by_inputs(op_type, ids)] if one]
        before, local.forward = getattr(local, "forward", (None, [])), found[0] if found else (op_type, [])
        try:
            return self._original(op_type, attrs, count, inputs, outputs, *rest)
        finally:
            local.forward = before

    def _key(self, tensor):
        """Under which this trace knows it, or None."""
        owner, key = getattr(tensor, "_tfdet_key", (None, None))
        return key if owner is self._recorder else None


def _of_these(attrs, known):
    """What is known of the op that was made with these attributes, or None."""
    found = known.get(id(attrs))
    return found[1] if found is not None and found[0] is attrs else None


def _forward_op(op_type, inputs, outputs):
    for tensor in outputs or ():
        if tf.is_symbolic(tensor) and tensor.op.type == op_type:
            return tensor.op
    for tensor in inputs or ():
        if tf.is_symbolic(tensor):
            for op in tensor.consumers():
                if op.type == op_type and all(mine is None or mine is its for mine, its in zip(inputs, op.inputs)):
                    return op
    return None
