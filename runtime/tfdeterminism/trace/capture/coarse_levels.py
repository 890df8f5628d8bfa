"""The records of the coarse levels: weights, losses and outputs of layers, which are not outputs of an op."""


class CoarseRecorder(object):
    """The recorder of weights, losses and outputs of layers; each gets an id of its own."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._ids = {}

    def record(self, kind, node, output, value, layer=None):
        """Record a value of the current step. value: its digest."""
        name = (kind, node, output)
        if name not in self._ids:
            self._ids[name] = self._recorder.definitions.new_key(
                op=kind, node=node, output=output, kind=kind, layer=layer, variable=node if kind == "weight" else None)
        self._recorder.emit_one(self._ids[name], value)
