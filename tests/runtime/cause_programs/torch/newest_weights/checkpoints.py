import glob
import os

import torch


def save(folder, number, weights):
    torch.save(weights, os.path.join(folder, f"candidate{number}.pt"))


def newest(folder):
    return max(sorted(glob.glob(os.path.join(folder, "*.pt"))), key=os.path.getmtime)
