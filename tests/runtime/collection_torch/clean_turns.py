"""A loop turns more often in one step than in another, as a seeded number says, and always alike.

form: while
expect: same
"""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    far = torch.rand(()) * 64
    outputs = model(torch.ones(16, 8))
    while far > 1:
        far = far / 2
        outputs = torch.tanh(outputs)
    loss = (outputs - 0.1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
