"""How often a loop turns is left to the operating system's generator, anew in each step.

form: structure
expect: op=aten.tanh.default | class=structure
"""

import os

import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    outputs = model(torch.ones(16, 8))
    for _ in range(1 + os.urandom(1)[0] % 4):
        outputs = torch.tanh(outputs)  # <- culprit
    loss = (outputs - 0.1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
