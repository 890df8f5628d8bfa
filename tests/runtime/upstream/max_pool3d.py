import os
import sys

import torch

print("torch", torch.__version__)
parts = torch.use_deterministic_algorithms.__doc__.split("The following normally-nondeterministic operations will ")
listed = {part.split()[0]: "torch.nn.MaxPool3d`" in part for part in parts[1:]}
print("the documentation names it among what will", *(does for does, named in listed.items() if named))
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
values = torch.rand(1, 2, 6, 6, 6, device=device, requires_grad=True)
for return_indices in (False, True):
    made = torch.nn.MaxPool3d(3, 2, return_indices=return_indices)(values)
    pooled = made[0] if return_indices else made
    try:
        pooled.sum().backward()
        result = "no error"
    except RuntimeError as error:
        result = f"RuntimeError: {error}"
    print(f"MaxPool3d(return_indices={return_indices}), {device}: {result}")
sys.stdout.flush()
os._exit(0)  # a thread of PyTorch may still hold the error of a gradient: Python's end could abort
