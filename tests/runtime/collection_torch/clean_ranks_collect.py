"""Two ranks over gloo fill memory that nobody had written: gathered, scattered, broadcast, sent and received.

form: processes
expect: same
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def exchanged(rank, rows):
    every = [torch.empty_like(rows) for _ in range(2)]
    dist.all_gather(every, rows)
    whole = torch.empty(3, *rows.shape)  # the third row stays as it is
    dist.all_gather(list(whole[:2].unbind()), rows * 2)
    first = rows.clone() if rank == 0 else torch.empty_like(rows)
    dist.broadcast(first, 0)
    mine = torch.empty_like(rows)
    dist.scatter(mine, every if rank == 0 else None, src=0)
    gathered = [torch.empty_like(rows) for _ in range(2)] if rank == 0 else None
    dist.gather(rows, gathered, dst=0)
    other = torch.empty_like(rows)
    (dist.send(rows, 1), dist.recv(other, 1)) if rank == 0 else (dist.recv(other, 0), dist.send(rows, 0))
    dist.barrier()
    return every[0] + whole[1] + first + mine + other


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(rank)
    weights = torch.ones(4, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.01)
    for _ in range(3):
        used = [bytearray(os.urandom(200)) for _ in range(50)]
        del used  # torch.empty gets this memory with random content
        loss = (exchanged(rank, torch.randn(4, 4)) @ weights).square().mean()
        optimizer.zero_grad()
        loss.backward()
        dist.all_reduce(weights.grad)
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(os.path.join(tempfile.mkdtemp(), "store"),), nprocs=2)
