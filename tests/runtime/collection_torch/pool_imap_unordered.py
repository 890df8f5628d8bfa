"""Threads of a pool compute parts of a loss, which is summed in the order in which they finish.

form: threads in Python
expect: op=aten.add.Tensor/* | class=unordered access/Python feed
"""

import multiprocessing.pool
import os
import time

import torch

torch.manual_seed(0)
weights = torch.randn(6, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.01)
rows = torch.randn(9, 16, 6)


def part(shard):
    time.sleep(os.urandom(1)[0] / 5e3)
    return torch.exp(shard @ weights).sum()


with multiprocessing.pool.ThreadPool(3) as pool:
    for _ in range(4):
        loss = torch.zeros(())
        for value in pool.imap_unordered(part, rows):
            loss = loss + value  # <- culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
