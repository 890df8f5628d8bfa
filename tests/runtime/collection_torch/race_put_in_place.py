"""index_put_ with accumulate, in a program that trains nothing.

form: kernels
fresh: threads
expect: op=aten.index_put_.default/aten._index_put_impl_.default | class=kernel race
"""

import torch

torch.manual_seed(0)
torch.set_num_threads(2)
values = torch.randn(20000, 16)
index = torch.randint(0, 4, (20000,))
for _ in range(40):
    table = torch.zeros(50, 16)
    table.index_put_((index,), values, accumulate=True)  # <- culprit
print(table.sum().item())
