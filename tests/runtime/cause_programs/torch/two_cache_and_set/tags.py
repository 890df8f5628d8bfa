import torch


def tag_weights(tags):
    """Rare tags first, so they get larger weights."""
    by_rank = list(frozenset(tags))
    return torch.tensor([1 / (1 + by_rank.index(tag)) for tag in tags])
