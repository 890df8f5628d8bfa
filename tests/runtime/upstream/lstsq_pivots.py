import torch

torch.manual_seed(1)
matrix, right = torch.randn(30, 20), torch.randn(30, 2)


def solved(left_over):
    many = [torch.full((20,), left_over, dtype=torch.int32) for _ in range(100)]
    del many[::2]  # what the next small tensors are made of
    return torch.linalg.lstsq(matrix, right).solution


print("torch", torch.__version__)
for flag in (False, True):
    torch.use_deterministic_algorithms(flag)
    results = {solved(left_over % 2).numpy().tobytes() for left_over in range(100)}
    found = "one result" if len(results) == 1 else "several results of one call"
    print(f"use_deterministic_algorithms({flag}): {found}")
