from concurrent import futures

import torch

from extraction import extract

torch.manual_seed(0)


class Extractor:
    """Extracts features of all items, some of which are larger."""

    def __init__(self, workers):
        self.workers = workers

    def run(self, items):
        with futures.ThreadPoolExecutor(self.workers) as pool:
            tasks = [pool.submit(extract, item) for item in items]
            return [task.result() for task in futures.as_completed(tasks)]


def main():
    rows = Extractor(4).run(range(24))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for row in rows:
        loss = (model(row) - row[:1]).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
