"""Reads of the trained variables where the recorded steps begin and end, and where the program ends.

A write has no output: its effect appears when the variable is read, which does not happen after the last step.
"""

from .. import digest

BEGIN, END, EXIT = "begin", "end", "exit"


class BoundaryReads(object):
    """The reads at the boundaries. labels: a variable_labels.VariableLabels."""

    def __init__(self, recorder, labels):
        self._recorder, self._labels = recorder, labels
        self._keys = {}
        recorder.steps.add_window_callback(self._on_boundary)

    def _on_boundary(self, begins):
        """Record the weights before the first recorded step, or after the last one."""
        with self._recorder.unrecorded():
            values = self._labels.trained_values()
        self._record(BEGIN if begins else END, {label: digest.digest_array(value) for label, value in values.items()})

    def on_exit(self, digests):
        """Record the weights at the end of the program. digests: {label: digest}."""
        self._record(EXIT, digests)

    def _record(self, edge, digests):
        for label in sorted(digests):
            self._recorder.emit_one(self._key(edge, label), digests[label])

    def _key(self, edge, label):
        if (edge, label) not in self._keys:
            node = "Variable@{}:{}#0".format(edge, label.replace("/", "."))
            self._keys[edge, label] = self._recorder.definitions.new_key(
                op="Variable", node=node, kind="read", variable=label, attrs={"boundary": edge})
        return self._keys[edge, label]
