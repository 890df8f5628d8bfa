"""An LSTM, whose kernel passes a buffer to its gradient without having written all of its bytes.

form: modules
expect: same
"""

import os

import torch

torch.manual_seed(0)
model = torch.nn.LSTM(5, 7, num_layers=2)
head = torch.nn.Linear(7, 1)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.01)
rows = torch.randn(6, 4, 5)


def dirty():
    """Fill memory with random bytes and free it, so that the kernel gets buffers with random content."""
    used = [bytearray(os.urandom(size)) for size in range(64, 1 << 16, 512)]
    del used


for _ in range(3):
    dirty()
    loss = head(model(rows)[0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
