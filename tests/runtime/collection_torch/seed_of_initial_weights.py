"""No seed.

form: modules
fresh: the generator is seeded at the first use of PyTorch
expect: op=aten.uniform_.default | class=seed or state | step=0
"""

import torch

model = torch.nn.Linear(4, 1)  # <- culprit
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.ones(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
