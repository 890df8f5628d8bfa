r"""Rows in an order that a random number decides, and no hash.

in: torch2.13
fresh: PYTHONHASHSEED
never: sorted\(
"""

import random

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.01)
rows = [[float(n + k) for k in range(4)] for n in range(6)]
random.SystemRandom().shuffle(rows)
for row in rows:
    loss = (model(torch.tensor([row])) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
