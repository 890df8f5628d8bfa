r"""Only the first run computes: it leaves a cache, which the later ones read.

in: torch2.13
says: Only the first of \d+ runs ended otherwise; .*cache\.npy
says: ^Verdict: Only
"""

import os

import numpy as np
import torch

CACHE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cache.npy")
torch.manual_seed(0)
if os.path.exists(CACHE):
    data = np.load(CACHE)
else:
    data = np.random.rand(8, 4).astype("float32")
    np.save(CACHE, data.round(3))
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    loss = (model(torch.from_numpy(data)) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
