"""Workers augment by Python's and NumPy's generators, which PyTorch seeds in each of them.

form: DataLoader
expect: same
"""

import random

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        row = torch.arange(4.0) + index / 10
        if random.random() < 0.5:
            row = row.flip(0)
        return row + torch.from_numpy(numpy.random.normal(size=4).astype(numpy.float32))


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for _ in range(2):
    for inputs in DataLoader(Rows(), batch_size=6, num_workers=2, shuffle=True):
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
