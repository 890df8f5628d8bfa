"""Uninitialized memory is partly filled, copied, resized and passed as `out`, but no uninitialized byte is used.

form: memory
expect: same
"""

import os

import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
rows = torch.randn(4, 6)


def dirty():
    """Fill memory with random bytes and free it, so that torch.empty returns memory with random content."""
    used = [bytearray(os.urandom(240)) for _ in range(50)]
    del used


for _ in range(4):
    dirty()
    padded = torch.empty(10, 6, dtype=torch.float32)
    padded[2:6] = rows
    moved = torch.cat([padded.clone(), torch.empty_like(padded)])
    dirty()
    grown = torch.ones(2, 6).resize_(5, 6)
    grown[2:].zero_()
    out = torch.empty(4, 6)
    torch.mul(rows, 2.0, out=out)
    scale = torch.empty(3, dtype=torch.float64)
    scale.numpy()[:2] = 0.5
    scale[2] = out.max().item()
    factor = float(torch.cat([scale, torch.empty(3).double()]).numpy()[1])
    loss = (model(moved[2:6]) + grown[:4] + out * factor).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
