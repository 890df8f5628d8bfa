"""The capture of a TensorFlow op's inputs, with the data that replay needs to run it again."""

from .. import input_capture


class TensorFlowInputCapture(input_capture.InputCapture):
    """The capture of an op's inputs; the probes call it for each op."""

    def capture_eager(self, key, name, op_type, inputs, attrs, outputs, values):
        """Capture an eager op that has run.

        key: id of its first output; name: (function, trace, node), see input_capture.parse(); values: inputs as arrays,
        None for an input without a value.
        """
        if self.is_wanted(*name):
            device = outputs[0].device if outputs else ""
            self._capture(key, {"op": op_type, "outputs": len(outputs), "device": device,
                                "eager_attrs": [_to_json(attribute) for attribute in attrs or ()]}, inputs, values)

    def capture_graph_op(self, key, op, device, values):
        """Capture a graph op. device: as far as known; values: arrays of all its inputs."""
        if not self.done:
            self._capture(key, {"op": op.type, "outputs": len(op.outputs), "device": device,
                                "node_def": op.node_def.SerializeToString().hex()}, list(op.inputs), values)

    def _capture(self, key, meta, tensors, values):
        dtypes = [tensor.dtype.base_dtype.name for tensor in tensors]
        self.on_op_run(key, dict(meta, framework="tensorflow", dtypes=dtypes), values)


def _to_json(value):
    """Return an attribute as JSON: bytes become {"bytes": hex}."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_to_json(element) for element in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return int(value) if hasattr(value, "__int__") else {"unknown": str(value)}
