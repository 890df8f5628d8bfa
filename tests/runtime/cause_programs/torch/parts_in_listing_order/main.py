import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from parts import read_parts, write_part

torch.manual_seed(0)


def prepare(folder, parts):
    """Tokenizes each document, in threads."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write_part(folder, number), range(parts)))


def main():
    folder = Path(tempfile.mkdtemp(prefix="parts-"))
    prepare(folder, 12)
    rows = read_parts(folder)
    shutil.rmtree(folder)
    model = torch.nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for row in rows:
        loss = (model(row) - row.mean()).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss after", len(rows), "parts:", loss.item())


if __name__ == "__main__":
    main()
