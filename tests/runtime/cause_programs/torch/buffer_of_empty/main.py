import argparse

import torch

from memory import Memory

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    memory = Memory(slots=6, width=4)
    cell = torch.nn.GRUCell(4, 4)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
    for step in range(args.steps):
        inputs = torch.randn(6, 4)
        hidden = cell(inputs, memory.read())
        loss = hidden.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        memory.write(step, hidden.detach())
    print("loss", loss.item())
