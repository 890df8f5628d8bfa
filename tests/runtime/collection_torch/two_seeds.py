"""Two ops that draw from a generator without a seed.

form: two culprits
expect: op=aten.rand.default | class=seed or state | step=0
expect: op=aten.randn.default | class=seed or state | step=0
"""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.seed()
for _ in range(3):
    inputs = torch.rand(8, 4)  # <- culprit
    loss = (model(inputs) + torch.randn(8, 1)).square().mean()  # <- culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
