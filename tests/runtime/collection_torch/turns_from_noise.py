"""A loop iterates until a value is small; the value starts as a random number of an unseeded generator.

form: while
expect: op=aten.rand.generator | class=seed or state
"""

import torch

torch.manual_seed(0)
own = torch.Generator()
own.seed()
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    far = torch.rand((), generator=own) * 64  # <- culprit
    outputs = model(torch.ones(16, 8))
    while far > 1:
        far = far / 2
        outputs = torch.tanh(outputs)
    loss = (outputs - 0.1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
