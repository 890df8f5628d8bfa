"""Whether a batch is flipped is drawn by Python, unseeded.

form: structure
expect: op=* | class=structure/Python feed
"""

import random

import torch

torch.manual_seed(0)
model = torch.nn.Conv2d(1, 2, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
images = torch.randn(4, 1, 8, 8)
for _ in range(12):
    batch = images
    if random.random() < 0.5:
        batch = torch.flip(images, [3])  # <- culprit
    loss = torch.tanh(model(batch)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
