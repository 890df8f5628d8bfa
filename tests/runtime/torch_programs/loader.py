"""A data loader of two workers: the order of two epochs, and the random numbers that the workers draw.

Prints one line of JSON: [the epochs with a generator that is seeded before each, the epochs without seeds].
"""

import json
import random

import numpy as np
import torch


class Examples(torch.utils.data.Dataset):
    """Each example with the random numbers that an augmentation would draw for it in the worker."""

    def __len__(self):
        return 32

    def __getitem__(self, number):
        return number, np.random.randint(1 << 30), random.randrange(1 << 30)


def seed_worker(_):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def epochs(seeded):
    generator = torch.Generator()
    loader = torch.utils.data.DataLoader(
        Examples(),
        batch_size=4,
        shuffle=True,
        num_workers=2,
        generator=generator,
        worker_init_fn=seed_worker if seeded else None,
    )
    for epoch in range(2):
        if seeded:
            generator.manual_seed(5728479885 + epoch)
        else:
            generator.seed()
        yield [[part.tolist() for part in batch] for batch in loader]


if __name__ == "__main__":
    print(json.dumps([list(epochs(True)), list(epochs(False))]))
