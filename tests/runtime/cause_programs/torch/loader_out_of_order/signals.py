import time

import numpy as np
from torch.utils.data import Dataset


class Signals(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.001)
        return np.sin(np.arange(12, dtype=np.float32) * (index + 1))[np.newaxis]
