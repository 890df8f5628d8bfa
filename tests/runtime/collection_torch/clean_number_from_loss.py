"""The learning rate follows the loss: a number that Python is told, and tells again.

form: numbers
expect: same
"""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = model(torch.ones(8, 4)).square().mean()
    optimizer.param_groups[0]["lr"] = 0.1 / (1 + loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
