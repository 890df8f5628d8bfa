import os
import tempfile

import torch


def spectrogram(number):
    wave = torch.sin(torch.arange(24) * (number + 1) / 5)
    return wave.reshape(4, 6).cumsum(dim=0)


def cached(kind, number, compute, folder=".cache"):
    """What was computed, or what an earlier run computed."""
    path = os.path.join(folder, f"{kind}-{number}.pt")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            torch.save(compute(number), file)
        os.replace(file.name, path)
    return torch.load(path)
