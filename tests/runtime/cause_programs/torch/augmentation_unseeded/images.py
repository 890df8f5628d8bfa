import numpy as np
import torch
from torch.utils.data import Dataset


class Images(Dataset):
    def __init__(self, count, size, transform):
        generator = np.random.default_rng(5)
        self.images = generator.random((count, 1, size, size), dtype=np.float32)
        self.labels = generator.integers(0, 3, count)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.transform(self.images[index])), int(self.labels[index])
