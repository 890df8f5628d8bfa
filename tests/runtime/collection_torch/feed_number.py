"""The learning rate comes from Python's own generator.

form: numbers
expect: op=Python | class=Python feed | step=0
"""

import random

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
for _ in range(3):
    loss = model(torch.ones(8, 4)).square().mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for one in model.parameters():
            one -= random.random() * one.grad  # <- culprit
