"""Nothing is trained.

form: no optimizer
expect: same
"""

import torch

values = torch.arange(1000.0).reshape(10, 100)
print(values.std(dim=1).sum().item(), torch.histc(values, 10).tolist())
