"""The mode `host`: plain Python that returns arrays; the case itself may use a framework or not."""

import numpy as np

from ..frameworks.base import Runner


class Host(Runner):
    """Runs a Computation of the kind 'host'."""

    def __init__(self, computation, settings):
        self._function = computation.function
        self._settings = settings

    def run(self):
        self._settings.before_repeat()
        results = self._function()
        if not isinstance(results, (list, tuple)):
            raise ValueError("a host case returns a list of arrays, not {}".format(type(results).__name__))
        return [np.asarray(array) for array in results]

    def op_placements(self):
        return None
