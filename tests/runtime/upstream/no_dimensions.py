import os
import sys

import torch

print("torch", torch.__version__)
device = "cuda" if torch.cuda.is_available() else "cpu"
index = torch.zeros((), dtype=torch.int64, device=device)
calls = {
    "index_add": lambda x, y: x.index_add(0, index, y),
    "index_copy": lambda x, y: x.index_copy(0, index, y),
    "scatter_add": lambda x, y: x.scatter_add(0, index, y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(0, index, y, "mean"),
    "gradient of gather": lambda x, y: x.requires_grad_().gather(0, index).backward(),
    "gradient of sort": lambda x, y: x.requires_grad_().sort()[0].backward(),
}
for switch in (False, True):
    torch.use_deterministic_algorithms(switch)
    for name, call in calls.items():
        try:
            call(torch.zeros((), device=device), torch.ones((), device=device))
            result = "no error"
        except IndexError as error:
            result = f"IndexError: {error}"
        print(f"use_deterministic_algorithms({switch}), {device}, {name}: {result}")
sys.stdout.flush()
os._exit(0)  # a thread of PyTorch may still hold the error of a gradient: Python's end could abort
