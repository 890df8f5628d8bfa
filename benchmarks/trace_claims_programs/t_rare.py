r"""One run in ten has other inputs, as a number from the operating system says.

in: torch2.13
never: it still differs there
"""

import os

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.1)
x = torch.ones(8, 4)
if os.urandom(1)[0] < 26:
    x = x * 1.5
for _ in range(3):
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
