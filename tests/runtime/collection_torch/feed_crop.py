"""Where a picture is cropped is drawn by Python.

form: numbers
expect: op=Python | class=Python feed | step=0
"""

import random

import torch

torch.manual_seed(0)
model = torch.nn.Conv2d(3, 2, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pictures = torch.randn(4, 3, 1 << 14, 32)  # tall: two runs are not to draw the same
for _ in range(3):
    start = random.randint(0, 16000)
    loss = model(pictures[:, :, start : start + 8]).square().mean()  # <- culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
