import os

import torch

from state import RunningState

torch.manual_seed(0)


def run_number():
    return os.getpid() % 1000


def main():
    state = RunningState(5)
    model = torch.nn.Linear(5, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * (1 + run_number() / 10000))
    for step in range(4):
        inputs = torch.ones(3, 5) * (step + 1)
        loss = (model(inputs) + state.bias()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        state.update(step)
    print("run", run_number(), "loss", loss.item())


if __name__ == "__main__":
    main()
