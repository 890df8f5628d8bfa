"""A generator of the program's own draws noise from the third step on.

form: modules
expect: op=aten.randn.generator | class=seed or state | step=2
"""

import torch

torch.manual_seed(0)
generator = torch.Generator()
generator.seed()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    inputs = torch.ones(8, 4)
    if step >= 2:
        inputs = inputs + torch.randn(8, 4, generator=generator)  # <- culprit
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
