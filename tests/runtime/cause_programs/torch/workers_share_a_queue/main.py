import torch
from torch.utils.data import DataLoader

from stream import Stream

torch.manual_seed(0)


def fill(stream, count):
    for number in range(count):
        stream.put(number)
    stream.close()


def main():
    stream = Stream(readers=2)
    fill(stream, 30)
    loader = DataLoader(stream, batch_size=None, num_workers=stream.readers, multiprocessing_context="fork")
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    for row in loader:
        loss = (model(row) - row.sum()).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
