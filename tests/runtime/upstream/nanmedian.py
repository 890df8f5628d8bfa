import torch

print("torch", torch.__version__)
print("named in the documentation:", "nanmedian" in torch.use_deterministic_algorithms.__doc__)
if torch.cuda.is_available():
    torch.use_deterministic_algorithms(True)
    torch.nanmedian(torch.ones(2, 3, device="cuda"), dim=1)  # RuntimeError
