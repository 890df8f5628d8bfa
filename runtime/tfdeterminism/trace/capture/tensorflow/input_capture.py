"""What of a TensorFlow op is kept beside its inputs, so that replay can run it again."""

from .. import input_capture


class TensorFlowInputCapture(input_capture.InputCapture):
    """Told of each op by what observes it."""

    def capture_eager(self, key, name, op_type, inputs, attrs, outputs, values):
        """An eager op has run. name: (function, trace, node); values: inputs as arrays, None for what has none."""
        if self.is_wanted(*name):
            device = outputs[0].device if outputs else ""
            self._ran(key, {"op": op_type, "outputs": len(outputs), "device": device,
                            "eager_attrs": [_to_json(one) for one in attrs or ()]}, inputs, values)

    def capture_graph_op(self, key, op, device, values):
        """A graph op is about to run, or has. device: where, as far as is known; values: arrays of all its inputs."""
        if not self.done:
            self._ran(key, {"op": op.type, "outputs": len(op.outputs), "device": device,
                            "node_def": op.node_def.SerializeToString().hex()}, list(op.inputs), values)

    def _ran(self, key, meta, tensors, values):
        dtypes = [one.dtype.base_dtype.name for one in tensors]
        self.on_op_run(key, dict(meta, framework="tensorflow", dtypes=dtypes), values)


def _to_json(value):
    """An attribute as JSON: bytes become {"bytes": hex}."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_to_json(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return int(value) if hasattr(value, "__int__") else {"unknown": str(value)}
