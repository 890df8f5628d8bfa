"""Threads of two pools make batches and losses, and end in any order; what they give has the order of its tasks.

form: threads in Python
expect: same
"""

import concurrent.futures
import multiprocessing.pool
import os
import time

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.randn(6, 16, 6)


def loss_of(shard):
    time.sleep(os.urandom(1)[0] / 5e3)
    loss = model(shard).square().mean()
    return loss, loss.item()


def moved(shard, by):
    time.sleep(os.urandom(1)[0] / 1e4)
    return torch.from_numpy(shard.numpy() + by)


with concurrent.futures.ThreadPoolExecutor(3) as pool, multiprocessing.pool.ThreadPool(3) as others:
    for _ in range(4):
        shards = list(others.imap(lambda shard: moved(shard, 0.5), rows, 2))
        losses = [one.result() for one in [pool.submit(loss_of, shard) for shard in shards]]
        total = sum(loss for loss, _ in losses) * max(number for _, number in losses)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
