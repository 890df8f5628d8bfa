import torch

print("torch", torch.__version__)
print("named in the documentation:", "AdaptiveMaxPool3d" in torch.use_deterministic_algorithms.__doc__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
image = torch.rand(4, 8, 23, 23, 23, device=device)
upstream = torch.rand(4, 8, 19, 19, 19, device=device)


def gradient():
    given = image.clone().requires_grad_()
    torch.nn.functional.adaptive_max_pool3d(given, 19).backward(upstream)
    return given.grad


first = gradient()
print(f"of ten more gradients on {device}, {sum(not torch.equal(first, gradient()) for _ in range(10))} differ")
