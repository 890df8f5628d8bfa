import torch

print("torch", torch.__version__)
print("named in the documentation:", "index_reduce" in torch.use_deterministic_algorithms.__doc__)
if torch.cuda.is_available():
    torch.use_deterministic_algorithms(True)
    index = torch.tensor([0, 0, 1], device="cuda")
    torch.zeros(2, device="cuda").index_reduce_(0, index, torch.ones(3, device="cuda"), "prod")  # RuntimeError
