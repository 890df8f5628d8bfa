import torch

text = torch.use_deterministic_algorithms.__doc__
print("torch", torch.__version__)
named = [mode for mode in ("bilinear", "trilinear") if f"``{mode}``" in text]
print("the documentation says that these raise:", named)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
for mode, rank in (("bilinear", 2), ("trilinear", 3)):
    image = torch.rand((1, 3) + (8,) * rank, device=device, requires_grad=True)
    torch.nn.functional.interpolate(image, scale_factor=2, mode=mode).sum().backward()
    print(f"the gradient of {mode} ran on {device}")
