import torch
from torch.utils.data import DataLoader

from signals import Signals


def run(epochs=1):
    torch.manual_seed(0)
    loader = DataLoader(Signals(40), batch_size=2, num_workers=2, in_order=False)
    model = torch.nn.Conv1d(1, 2, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch).square().mean() - batch.mean() * model.weight.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    run()
