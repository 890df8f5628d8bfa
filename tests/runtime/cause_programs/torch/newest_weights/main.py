"""Fine-tunes from the newest of the checkpoints that candidates have left."""
import tempfile
import threading
import time

import torch

from checkpoints import newest, save

CANDIDATES = 12


def train_candidate(folder, number):
    generator = torch.Generator().manual_seed(number)
    weights = torch.randn(4, 4, generator=generator)
    for _ in range(3):
        weights = weights @ weights.T / 4
        time.sleep(0.01)  # waits for its data
    save(folder, number, weights)


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        candidates = [threading.Thread(target=train_candidate, args=(folder, n)) for n in range(CANDIDATES)]
        for one in candidates:
            one.start()
        for one in candidates:
            one.join()
        path = newest(folder)
        weights = torch.load(path)
    model = torch.nn.Linear(4, 4)
    with torch.no_grad():
        model.weight.copy_(weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.eye(4)
    for _ in range(4):
        loss = (model(inputs) - inputs).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
