import numpy as np


class History:
    """The last losses, to tell when they no longer fall."""

    def __init__(self, length):
        self.losses = np.ndarray(length, np.uint32)

    def add(self, step, loss):
        self.losses[step] = int(loss * 1000)

    def spread(self):
        return float(np.mean(self.losses % 1000)) / 1e4
