r"""Most of a buffer is never written, and all of it read.

in: torch2.13
says: uninitialized memory
"""

import os

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(4):
    junk = [bytearray(os.urandom(4300)) for _ in range(200)]
    del junk
    pad = torch.empty(1024, 4, dtype=torch.uint8)
    pad[:4] = 1
    x = pad.float() / 255
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
