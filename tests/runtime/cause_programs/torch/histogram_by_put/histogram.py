import torch


def soft_histogram(values, weights, bins):
    table = torch.zeros(bins)
    where = (values * bins).long().clamp(max=bins - 1)
    table.put_(where, weights, accumulate=True)
    return table
