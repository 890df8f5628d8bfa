"""A value of the clock.

form: numbers
expect: op=Python | class=Python feed | step=0
"""

import time

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    now = torch.tensor([time.time() % 1.0] * 4)  # <- culprit
    loss = (model(torch.ones(8, 4)) * now.sum()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
