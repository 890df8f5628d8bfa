r"""Noise is added while steps are fast: probes at every op make them slow, so that no traced run has any.

in: torch2.13
says: Your program differs, the probes hide it
says: in turns, \d+ of \d+ untraced runs
"""

import os
import time

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), 0.01)
x = torch.rand(8, 4)


def spent(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def tower():
    y = x
    for _ in range(200):
        y = y * 1.0
    return y


for _ in range(3):
    slow = min(spent(tower) for _ in range(3)) > 2 * min(spent(lambda: sum(range(100000))) for _ in range(3))
    noise = 0 if slow else os.urandom(1)[0] / 256
    opt.zero_grad()
    (model(x + noise) - 1).square().mean().backward()
    opt.step()
