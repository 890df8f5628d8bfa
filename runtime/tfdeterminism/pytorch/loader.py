"""Seeds for a DataLoader: DataLoader(data, worker_init_fn=seed_worker, generator=generator(seed))."""

import random


def generator(seed):
    """Return a seeded torch.Generator; it determines the order of the examples and each worker's seed."""
    import torch
    torch_generator = torch.Generator()
    torch_generator.manual_seed(seed)
    return torch_generator


def seed_worker(_):
    """Seed NumPy and Python in a worker from PyTorch's seed of that worker."""
    import numpy
    import torch
    seed = torch.initial_seed() % 2 ** 32
    numpy.random.seed(seed)
    random.seed(seed)
