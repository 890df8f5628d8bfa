import multiprocessing
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch

from work import from_process, from_thread


def threads(count):
    """Results lie where their number says, whenever they come."""
    rows = [None] * count
    with ThreadPoolExecutor(4) as pool:
        numbers = {pool.submit(from_thread, number): number for number in range(count)}
        for task in as_completed(numbers):
            rows[numbers[task]] = task.result()
    return rows


def processes(count):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(from_process, range(count))


if __name__ == "__main__":
    torch.manual_seed(0)
    rows = torch.tensor([a + b for a, b in zip(threads(16), processes(16))])
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for row in rows:
        loss = (model(row) - row.sum()).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
