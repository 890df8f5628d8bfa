import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from rows import NoisyRows


def seed_worker(number):
    seed = torch.initial_seed() % 2**32
    random.seed(seed)
    np.random.seed(seed)


def main():
    torch.manual_seed(4)
    loader = DataLoader(NoisyRows(30), batch_size=5, shuffle=True, num_workers=2, worker_init_fn=seed_worker,
                        generator=torch.Generator().manual_seed(9))
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1):
        for rows in loader:
            loss = (model(rows) - rows.norm(dim=1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
