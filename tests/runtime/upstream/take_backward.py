import torch

print("torch", torch.__version__)
print("named in the documentation:", "torch.take`" in torch.use_deterministic_algorithms.__doc__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
table = torch.ones(5, device=device, requires_grad=True)
result = table.take(torch.tensor([0, 0, 1], device=device))
print("its gradient is", type(result.grad_fn).__name__)
result.sum().backward()  # RuntimeError on CUDA
