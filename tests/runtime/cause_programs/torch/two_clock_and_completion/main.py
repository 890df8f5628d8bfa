import datetime
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch

from rows import read_row

torch.manual_seed(0)


def load(count):
    with ThreadPoolExecutor(3) as pool:
        return [task.result() for task in as_completed([pool.submit(read_row, n) for n in range(count)])]


def warmup():
    """A rate that is a little lower in the first half of a minute."""
    now = datetime.datetime.now()
    return 0.05 + 0.01 * (now.second + now.microsecond / 1e6) / 60


model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=warmup())
for row in load(18):
    loss = (model(row) - row.max()).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
