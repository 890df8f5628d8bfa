r"""The time, a process id and a UUID are printed: nothing differs.

in: torch2.13
says: No difference
"""

import os
import time
import uuid

import torch

torch.manual_seed(1)
print(time.time(), os.getpid(), uuid.uuid4())
net = torch.nn.Sequential(
    torch.nn.Conv1d(2, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(24, 1)
)
opt = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(4):
    x = torch.rand(5, 2, 8)
    loss = net(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
