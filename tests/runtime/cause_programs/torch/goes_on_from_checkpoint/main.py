import torch

from checkpoint import Checkpoint
from model import build

torch.manual_seed(0)
model, optimizer = build()
checkpoint = Checkpoint("last.pt")
first = checkpoint.restore(model, optimizer)
inputs = torch.linspace(0, 1, 20).reshape(10, 2)
targets = inputs.prod(dim=1, keepdim=True)
for epoch in range(first, first + 5):
    loss = (model(inputs) - targets).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("epoch", epoch, "loss", loss.item())
checkpoint.save(model, optimizer, first + 5)
