import torch


class Ratings:
    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        self.users = torch.randint(0, 30, (count,), generator=generator)
        self.items = torch.randint(0, 20, (count,), generator=generator)
        self.values = torch.rand(count, generator=generator)
