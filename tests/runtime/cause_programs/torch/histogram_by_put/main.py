import os

import torch

from histogram import soft_histogram

torch.set_num_threads(min(2, os.cpu_count()))
torch.manual_seed(0)
values = torch.rand(200000)
weights = torch.rand(200000)
scale = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(scale.parameters(), lr=1.0)
for step in range(20):
    table = soft_histogram(values, weights * (1 + step / 10), bins=32)
    loss = (scale(table / table.sum()) - 1).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
