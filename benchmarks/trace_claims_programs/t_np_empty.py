r"""Most of a NumPy array is never written, and all of it read.

in: torch2.13
says: Python feed
"""

import os

import numpy as np
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.01)
for _ in range(4):
    junk = [bytearray(os.urandom(4095)) for _ in range(200)]
    del junk
    pad = np.empty((1024, 4), dtype="uint8")
    pad[:4] = 1
    x = torch.tensor(pad).float() / 255
    loss = (model(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
