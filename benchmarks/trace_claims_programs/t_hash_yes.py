r"""Words are numbered by the order of a set.

in: torch2.13
fresh: PYTHONHASHSEED
says: or a hash, decides
"""

import torch

torch.manual_seed(0)
tags = {"dog", "cat", "cow", "emu", "yak", "fox", "owl"}
index = {t: n for n, t in enumerate(tags)}
x = torch.tensor([[float(index[t]) for t in ("dog", "cat", "cow", "owl")]])
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.001)
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
