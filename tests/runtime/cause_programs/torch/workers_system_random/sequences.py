import random

import torch
from torch.utils.data import Dataset


class Sequences(Dataset):
    """Windows of a long series, with a random offset each."""

    def __init__(self, count, window=6):
        self.series = torch.sin(torch.arange(500).float() / 10).unsqueeze(1) * torch.ones(4)
        self.count, self.window = count, window

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        shift = random.SystemRandom().randrange(8)
        return self.series[10 * index + shift: 10 * index + shift + self.window]
