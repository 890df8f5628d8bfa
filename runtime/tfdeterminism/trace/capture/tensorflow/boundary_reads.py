"""What is trained, read where the steps that are recorded begin and end, and where the program does.

A write puts out nothing: what it has done is seen by whoever reads the variable, and after the last step nobody does.
"""

from .. import digest

BEGIN, END, EXIT = "begin", "end", "exit"


class BoundaryReads(object):
    """labels: a variable_labels.VariableLabels."""

    def __init__(self, recorder, labels):
        self._recorder, self._labels = recorder, labels
        self._keys = {}
        recorder.steps.add_window_callback(self._reached)

    def _reached(self, begins):
        """The first of the steps that are recorded begins, or the last has ended."""
        with self._recorder.unrecorded():
            values = self._labels.trained_values()
        self._record(BEGIN if begins else END, {label: digest.digest_array(value) for label, value in values.items()})

    def on_exit(self, digests):
        """The program ends. digests: {label: digest} of what it has trained."""
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
