"""Data drawn by NumPy without a seed.

form: memory
expect: op=Python | class=Python feed | step=0
"""

import numpy
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    inputs = torch.from_numpy(numpy.random.rand(8, 4).astype(numpy.float32))  # <- culprit
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
