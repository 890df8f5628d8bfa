"""For DataLoader: DataLoader(data, worker_init_fn=seed_worker, generator=generator(seed))."""

import random


def generator(seed):
    """A seeded generator: it decides the order of the examples, and what each worker's seed is."""
    import torch
    made = torch.Generator()
    made.manual_seed(seed)
    return made


def seed_worker(_):
    """Seed NumPy and Python in a worker from the seed that PyTorch gave it."""
    import numpy
    import torch
    seed = torch.initial_seed() % 2 ** 32
    numpy.random.seed(seed)
    random.seed(seed)
