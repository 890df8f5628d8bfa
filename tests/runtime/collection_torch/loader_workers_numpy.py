"""Workers that draw by NumPy, unseeded: each process has a trace, and the first is named.

The line marked `or` is right as well.

form: DataLoader
expect: op=Python/DataLoader | class=Python feed/input pipeline | step=0
"""

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        return torch.from_numpy(numpy.random.default_rng().random(4, numpy.float32))  # <- culprit


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs in DataLoader(Noise(), batch_size=8, num_workers=2):  # <- or
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
