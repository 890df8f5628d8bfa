"""Threads of two pools make batches and gradients, and end in any order; what they give has the order of its tasks.

Each thread has a graph of its own: in a shared one, autograd would add gradients in an order that depends on threads.

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


def gradient(shard):
    time.sleep(os.urandom(1)[0] / 5e3)
    loss = model(shard).square().mean()
    return torch.autograd.grad(loss, list(model.parameters())), loss.item()


def moved(shard, by):
    time.sleep(os.urandom(1)[0] / 1e4)
    return torch.from_numpy(shard.numpy() + by)


with concurrent.futures.ThreadPoolExecutor(3) as pool, multiprocessing.pool.ThreadPool(3) as others:
    for _ in range(4):
        shards = list(others.imap(lambda shard: moved(shard, 0.5), rows, 2))
        found = [one.result() for one in [pool.submit(gradient, shard) for shard in shards]]
        largest = max(loss for _, loss in found)
        optimizer.zero_grad()
        for parameter, *parts in zip(model.parameters(), *[gradients for gradients, _ in found], strict=True):
            parameter.grad = sum(parts) * largest
        optimizer.step()
