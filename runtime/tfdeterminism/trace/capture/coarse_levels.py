"""What the coarse levels record: weights, losses and outputs of layers, which are values of no op."""


class CoarseRecorder(object):
    """Gives each such value an id of its own, once."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._ids = {}

    def record(self, kind, node, output, value, layer=None):
        """value: its digest."""
        name = (kind, node, output)
        if name not in self._ids:
            self._ids[name] = self._recorder.definitions.new_key(
                op=kind, node=node, output=output, kind=kind, layer=layer, variable=node if kind == "weight" else None)
        self._recorder.emit_one(self._ids[name], value)
