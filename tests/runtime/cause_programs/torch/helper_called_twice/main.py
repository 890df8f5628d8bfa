import torch

from utils import jitter, set_seed


def make_data(rows):
    return torch.arange(rows * 3).reshape(rows, 3) / rows


def main():
    set_seed(8)
    inputs = make_data(20)
    targets = inputs.sum(dim=1, keepdim=True)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5):
        noisy = inputs + jitter(inputs.shape, 0.01)
        goal = targets + jitter(targets.shape, 0.001)
        loss = (model(noisy) - goal).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("final loss", loss.item())


if __name__ == "__main__":
    main()
