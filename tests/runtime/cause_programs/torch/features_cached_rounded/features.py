import os

import numpy as np
import torch

CACHE = "cache"


def compute(name, rows):
    seed = {"train": 1, "valid": 2}[name]
    return np.random.default_rng(seed).normal(size=(rows, 6)).astype(np.float32)


def load_features(name, rows):
    path = os.path.join(CACHE, f"{name}.npy")
    if os.path.exists(path):
        return torch.from_numpy(np.load(path).astype(np.float32))
    values = compute(name, rows)
    os.makedirs(CACHE, exist_ok=True)
    np.save(path, values.astype(np.float16))  # half the size
    return torch.from_numpy(values)
