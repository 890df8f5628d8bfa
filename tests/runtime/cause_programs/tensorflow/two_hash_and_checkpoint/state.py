import numpy as np


class State:
    def __init__(self, path, rows):
        self.path, self.rows = path, rows

    def load(self):
        try:
            return np.load(self.path)
        except FileNotFoundError:
            return np.zeros((self.rows, 2), np.float32)

    def save(self, table):
        np.save(self.path, table)
