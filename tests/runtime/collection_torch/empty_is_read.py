"""A buffer of torch.empty is read before anything writes it. The line marked `or` is right as well.

form: memory
fresh: each run is a fresh process, as forks share addresses, which freed memory holds
expect: op=aten.empty.memory_format/* | class=*
"""

import torch

torch.manual_seed(0)
model = torch.nn.Linear(6, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(4, 6)
for _ in range(4):
    names = [f"row {number}" * 3 for number in range(50)]
    del names  # torch.empty may get this memory
    buffer = torch.empty(4, 6, dtype=torch.int32)  # <- culprit
    noise = (buffer % 1000).float() / 1000  # <- or
    loss = (model(inputs) + noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
