import numpy as np


class Sampler:
    """Samplers differ from each other."""

    def __init__(self, rows):
        self.rows = rows
        self.generator = np.random.default_rng(id(self) // 16)

    def sample(self, count):
        return self.rows[self.generator.integers(0, len(self.rows), count)]
