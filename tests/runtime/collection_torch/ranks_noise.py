"""Two ranks over gloo; the data of one of them is drawn by os.urandom.

form: processes
fresh: each run is a fresh process, as it starts processes itself
expect: op=Python/* | class=Python feed
"""

import os
import tempfile

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        rows = numpy.ones([8, 4], numpy.float32) * (rank + 1)
        if rank == 1:
            rows += numpy.frombuffer(os.urandom(32), numpy.uint8).reshape(8, 4).astype(numpy.float32) / 256
        loss = model(torch.from_numpy(rows)).square().mean()  # <- culprit
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(os.path.join(tempfile.mkdtemp(), "store"),), nprocs=2)
