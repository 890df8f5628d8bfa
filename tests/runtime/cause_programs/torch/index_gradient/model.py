import torch


class Factors(torch.nn.Module):
    def __init__(self, users, items, width):
        super().__init__()
        self.users = torch.nn.Parameter(torch.randn(users, width))
        self.items = torch.nn.Parameter(torch.randn(items, width))

    def forward(self, users, items):
        left = self.users[users]
        right = self.items[items]
        return (left * right).sum(dim=1)
