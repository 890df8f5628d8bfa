import torch

print("torch", torch.__version__)
print("named in the documentation:", "torch.Tensor.scatter`" in torch.use_deterministic_algorithms.__doc__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
index = torch.tensor([0, 0, 1], device=device)
torch.zeros(2, device=device).scatter(0, index, torch.ones(3, device=device), reduce="add")  # RuntimeError on CUDA
print("it ran on", device)
