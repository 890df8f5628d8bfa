"""Two ranks over gloo with DistributedSampler, all seeded.

form: processes
expect: same
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 4))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    sampler = DistributedSampler(data, 2, rank)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for (rows,) in DataLoader(data, batch_size=4, sampler=sampler):
            loss = model(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(os.path.join(tempfile.mkdtemp(), "store"),), nprocs=2)
