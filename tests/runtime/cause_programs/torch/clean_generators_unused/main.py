import random

import numpy as np
import torch

from retry import Backoff, temporary_name

np.random.seed(1)
torch.manual_seed(1)
backoff = Backoff()
spare = np.random.default_rng()
order = torch.randperm(12)
noise = np.random.normal(size=(12, 2)).astype(np.float32)
print("writes to", temporary_name(), "token", random.getrandbits(32))


def augment(rows, enabled=False):
    return rows + spare.normal(size=rows.shape) if enabled else rows


model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.from_numpy(augment(noise))[order]
for batch in rows.split(3):
    backoff.wait()
    loss = (model(batch) - batch.prod(dim=1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
