import torch

print("torch", torch.__version__)
print("named in the documentation:", "cumprod" in torch.use_deterministic_algorithms.__doc__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
values = 0.999 + 0.002 * torch.rand(1 << 20, device=device)
first = torch.cumprod(values, 0)
differ = sum(not torch.equal(first, torch.cumprod(values, 0)) for _ in range(10))
print(f"of ten more on {device}, {differ} differ")
