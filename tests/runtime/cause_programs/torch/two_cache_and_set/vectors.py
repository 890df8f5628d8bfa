import os

import torch


def vectors(count, path):
    if os.path.exists(path):
        known = torch.load(path)
    else:
        known = torch.zeros(count, 4)
    found = (known + torch.sin(torch.arange(count * 4).reshape(count, 4).float())) / 2
    torch.save(found, path)
    return found
