"""Trains for a given time, and then prints how good it is."""
import argparse

import torch

from budget import Budget

torch.manual_seed(0)
torch.set_num_threads(1)


def batches():
    generator = torch.Generator().manual_seed(3)
    while True:
        inputs = torch.randn(32, 10, generator=generator)
        yield inputs, inputs.sum(dim=1, keepdim=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.4)
    args = parser.parse_args()
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    budget = Budget(args.seconds)
    for inputs, targets in batches():
        loss = (model(inputs) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if budget.is_spent():
            break
    print(f"loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
