"""The gradient of an index adds from several threads.

form: kernels
fresh: each run is a fresh process, as threads do not survive a fork
expect: op=aten.index_put.default/aten._index_put_impl_.default | class=kernel race
"""

import torch

torch.manual_seed(0)
torch.set_num_threads(2)
table = torch.nn.Parameter(torch.randn(50, 16))
index = torch.randint(0, 4, (20000,))
weights = torch.randn(20000, 16)
optimizer = torch.optim.SGD([table], lr=0.01)
for _ in range(40):
    rows = table[index]  # <- culprit
    loss = (rows * weights).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
