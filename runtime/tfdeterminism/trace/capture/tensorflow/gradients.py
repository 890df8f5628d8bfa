"""Which op's gradient an op belongs to: told to TensorFlow's graph, or to this thread."""

from . import internals as tf

_REGISTRY = tf.optional("tensorflow.python.pywrap_tfe") or tf.optional("tensorflow.python.pywrap_tensorflow")


class Gradients(object):
    def __init__(self, recorder):
        self._recorder = recorder
        self._original = tf.backprop._gradient_function
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._gradient)

    def close(self):
        _REGISTRY.TFE_Py_RegisterGradientFunction(self._original)

    def _gradient(self, op_type, attrs, count, inputs, outputs, *rest):
        known = [one for one in list(outputs or ()) + list(inputs or ()) if one is not None]
        if self._recorder.active and known:
            if tf.is_symbolic(known[0]):
                forward = _forward_op(op_type, inputs, outputs)
                if forward is not None and forward.graph is tf.ops.get_default_graph():
                    with forward.graph._original_op(forward):
                        return self._original(op_type, attrs, count, inputs, outputs, *rest)
            elif tf.context.executing_eagerly():
                return self._eagerly(op_type, attrs, count, inputs, outputs, *rest)
        return self._original(op_type, attrs, count, inputs, outputs, *rest)

    def _eagerly(self, op_type, attrs, count, inputs, outputs, *rest):
        local = self._recorder.local
        keys = [getattr(one, "_tfdet_key", (None, None)) for one in outputs or () if one is not None]
        found = [self._recorder.eager.described(key) for owner, key in keys if owner is self._recorder]
        if not found:  # TensorFlow drops outputs that the gradient does not need
            ids = [getattr(one, "_tfdet_key", (None, None))[1] for one in inputs or () if one is not None]
            found = [one for one in [self._recorder.eager.fed_by(op_type, ids)] if one]
        before, local.forward = getattr(local, "forward", (None, [])), found[0] if found else (op_type, [])
        try:
            return self._original(op_type, attrs, count, inputs, outputs, *rest)
        finally:
            local.forward = before


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
