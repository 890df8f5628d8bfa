import torch
from torch.nn import functional

text = torch.use_deterministic_algorithms.__doc__
print("torch", torch.__version__)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.use_deterministic_algorithms(True)
image = torch.rand(1, 4, 8, 8, device=device)
sound = torch.rand(1, 4, 64, device=device)
some = {
    "adaptive_avg_pool1d": ("AdaptiveAvgPool1d", lambda x: functional.adaptive_avg_pool1d(x, 5), sound),
    "adaptive_max_pool1d": ("AdaptiveMaxPool1d", lambda x: functional.adaptive_max_pool1d(x, 5), sound),
    "interpolate, mode area": ("``area``", lambda x: functional.interpolate(x, size=(5, 5), mode="area"), image),
    "local_response_norm": ("local_response_norm", lambda x: functional.local_response_norm(x, 2), image),
    "stft": (
        "stft",
        lambda x: torch.stft(x[0], 16, window=torch.ones(16, device=device), return_complex=True).abs(),
        sound,
    ),
}
for name, (entry, run, given) in some.items():
    given = given.clone().requires_grad_()
    try:
        run(given).sum().backward()
        found = "ran on " + device
    except RuntimeError as error:
        found = str(error).split(",")[0]
    print(f"{name}: named in the documentation: {entry in text}; its gradient: {found}")
