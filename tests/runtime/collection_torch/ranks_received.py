"""What one rank draws by os.urandom another receives into memory that nobody had written, and trains on.

form: processes
fresh: each run is a fresh process, as it starts processes itself
expect: op=Python/* | class=Python feed
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    weights = torch.ones(4, 1, requires_grad=True)
    optimizer = torch.optim.SGD([weights], lr=0.01)
    for _ in range(3):
        if rank == 1:
            dist.send(torch.tensor([float(one) for one in os.urandom(4)]), 0)  # <- culprit
            continue
        rows = torch.empty(4)
        dist.recv(rows, 1)
        loss = (rows / 256.0 @ weights).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(os.path.join(tempfile.mkdtemp(), "store"),), nprocs=2)
