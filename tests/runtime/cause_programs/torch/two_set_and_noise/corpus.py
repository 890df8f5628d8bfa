import numpy as np
import torch

GENERATOR = np.random.default_rng()


class Corpus:
    def __init__(self, words):
        self.numbers = {}
        for word in set(words):
            self.numbers[word] = len(self.numbers)
        self.ids = [self.numbers[word] for word in words]

    def __len__(self):
        return len(self.numbers)

    def pairs(self):
        return zip(self.ids, self.ids[1:])


def noisy(hidden):
    return hidden + torch.from_numpy(GENERATOR.normal(0, 0.01, tuple(hidden.shape))).float()
