import random

import numpy as np
from torch.utils.data import Dataset, get_worker_info


class NoisyRows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        row = np.random.normal(index / self.count, 0.1, 3).astype(np.float32)
        return row * random.choice([1, -1]) + get_worker_info().id
