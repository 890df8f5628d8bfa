"""How often something is done is left to chance.

form: structure
expect: op=aten.tanh.default | class=structure
"""

import random

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
turns = random.randint(1, 10000) % 300 + 1
for _ in range(3):
    outputs = model(torch.ones(8, 4))
    for _ in range(turns):
        outputs = torch.tanh(outputs)  # <- culprit
    loss = outputs.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
