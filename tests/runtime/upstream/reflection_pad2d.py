import torch

print("torch", torch.__version__)
print("named in the documentation:", "ReflectionPad2d" in torch.use_deterministic_algorithms.__doc__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
image = torch.rand(1, 3, 8, 8, device=device, requires_grad=True)
torch.nn.ReflectionPad2d(2)(image).sum().backward()
print("its gradient ran on", device)
