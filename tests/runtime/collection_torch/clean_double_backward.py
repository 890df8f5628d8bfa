"""A gradient of a gradient.

form: gradients of gradients
expect: same
"""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    inputs = torch.ones(8, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(model(inputs).tanh().sum(), [inputs], create_graph=True)
    loss = (slope.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
